"""Find the fenced code blocks of the documentation, and what `tests/cases/snippets.json` says about each.

A row of this file applies to the blocks of a `page` with a `language` (default: any) whose text starts with `begins`;
for each block, the first such row counts. It has one of three fields: `test`, the test that runs the blocks; `here`,
how `tests/cli/test_snippets.py` runs them; or `reason`, why no test runs them. A block that shows output is not run,
but compared with the output.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "client/README.md", "services/*/README.md", "examples/**/*.md", "docs/*.md"]
ROWS: list[dict[str, str]] = json.loads((ROOT / "tests/cases/snippets.json").read_text(encoding="utf-8"))
FIGURES = r"\w+://[^\s,│]+|\d[\d,]*(?:\.\d+)*"
"""Regular expression for what may differ between a page and a test's output: URLs and numbers."""
STOP_SECONDS = 60
_BLOCK = re.compile(r"^( *)```([^`\n]*)\n(.*?)^\1``` *$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """A code block.

    Args:
        page: path of its page, relative to the root of the tree.
        line: number of its first line.
        language: text after the opening fence; empty if there is none.
        text: its text without fences and indentation.
    """

    page: str
    line: int
    language: str
    text: str

    def row(self) -> dict[str, str] | None:
        """Return the row of `snippets.json` for this block; None if there is none."""
        return next((row for row in ROWS if self._fits(row)), None)

    def _fits(self, row: dict[str, str]) -> bool:
        mine = row["page"], row.get("language", self.language)
        return mine == (self.page, self.language) and self.text.startswith(row.get("begins", ""))


def snippets() -> list[Snippet]:
    """Return the code blocks of all pages, page by page."""
    found = []
    for page in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 2
            found.append(Snippet(name, line, block[2], textwrap.dedent(block[3])))
    return found


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Return the language and the text of each block of a page, in order."""
    return [(one.language, one.text) for one in snippets() if one.page == page]


def block(page: str, language: str, begins: str) -> str:
    """Return the text of the only block of a page with this language whose text starts with `begins`."""
    [found] = [text for kind, text in blocks_of(page) if kind == language and text.startswith(begins)]
    return found


def assert_shown(block: str, printed: str, differs: str = FIGURES) -> None:
    """Check that all lines of a block were printed, in this order; other lines may be between them.

    Args:
        block: output as the page shows it. The widths of table columns are not compared.
        printed: output of the command.
        differs: regular expression for text that may differ between machines.

    Raises:
        AssertionError: a line is missing.
    """

    def plain(text: str) -> list[str]:
        return [re.sub(r"([ ━─])\1+", r"\1", re.sub(differs, "#", line)).rstrip() for line in text.splitlines()]

    rest = iter(plain(printed))
    assert [line for line in plain(block) if line not in rest] == [], printed


@contextmanager
def staying(commands: str, ready: str, log: Path, cwd: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Run commands of which the last one is a server, and stop the server when the block ends.

    Args:
        commands: shell commands.
        ready: text that the server prints when it is ready.
        log: file for the output.
        cwd: working folder.
        environment: all environment variables of the commands.

    Raises:
        AssertionError: the commands end, or the server does not become ready.
    """
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["bash", "-euc", commands], cwd=cwd, env=environment, stdout=file, stderr=file, start_new_session=True
        )
    try:
        eventually(lambda: process.poll() is not None or ready in log.read_text(), log.read_text, 2 * STOP_SECONDS)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(STOP_SECONDS)
