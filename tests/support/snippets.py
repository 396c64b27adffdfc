"""The fenced blocks of code on the pages: who runs each, or why nobody does, is said in `tests/cases/snippets.json`.

A row is of the blocks of a page in a language that begin with its words; the first row that fits counts. It has either
`test`, which runs them, or `here`, how `tests/cli/test_snippets.py` does, or `reason`, why no test can. Of a block that
shows what is printed, running it is to compare it with that.
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
"""What differs between a page and the machine of a test: addresses and figures."""
STOP_SECONDS = 60
_BLOCK = re.compile(r"^( *)```([^`\n]*)\n(.*?)^\1``` *$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """A block of code.

    Args:
        page: where it is, below the root of the tree.
        line: its first one.
        language: what stands behind the fence; empty for nothing.
        text: without the fences and the indentation.
    """

    page: str
    line: int
    language: str
    text: str

    def row(self) -> dict[str, str] | None:
        """What is said of it; None for nothing."""
        return next((row for row in ROWS if self._fits(row)), None)

    def _fits(self, row: dict[str, str]) -> bool:
        mine = row["page"], row.get("language", self.language)
        return mine == (self.page, self.language) and self.text.startswith(row.get("begins", ""))


def snippets() -> list[Snippet]:
    """All of them, page by page."""
    found = []
    for page in sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
        for block in _BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 2
            found.append(Snippet(name, line, block[2], textwrap.dedent(block[3])))
    return found


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of a page, in order."""
    return [(one.language, one.text) for one in snippets() if one.page == page]


def block(page: str, language: str, begins: str) -> str:
    """The text of the one block of a page in a language that begins so."""
    [found] = [text for kind, text in blocks_of(page) if kind == language and text.startswith(begins)]
    return found


def assert_shown(block: str, printed: str, differs: str = FIGURES) -> None:
    """Each line of a block is one of those that were printed, in that order, but for the widths of a table's columns.

    Args:
        block: of a page.
        printed: by the command that the page says printed it.
        differs: matches what may be another on each machine.
    """

    def plain(text: str) -> list[str]:
        return [re.sub(r"([ ━─])\1+", r"\1", re.sub(differs, "#", line)).rstrip() for line in text.splitlines()]

    rest = iter(plain(printed))
    assert [line for line in plain(block) if line not in rest] == [], printed


@contextmanager
def staying(commands: str, ready: str, log: Path, cwd: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Runs commands of which the last starts a server that stays; it is gone afterwards.

    Args:
        commands: of a shell.
        ready: what the server prints when it is.
        log: the file that what it prints is written to.
        cwd: where they run.
        environment: of theirs.

    Raises:
        AssertionError: they end, or the server does not become ready.
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
