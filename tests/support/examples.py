"""Run the examples of a page as printed: write its files, and run its commands and its Python code in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.rules.conftest import clean_environment
from tests.support.snippets import ROOT

FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
UNSCORED = "samples are unscored; first error: "


class Block(NamedTuple):
    """A code block: its language, the file to write it to (empty for none), and its text."""

    language: str
    file: str
    text: str


def sections(page: str) -> dict[str, list[Block]]:
    """Return the code blocks of a page in `docs/` by heading; headings without code are left out."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {heading: [Block(*match) for match in FENCE.findall(body)] for heading, body in bodies.items()}
    return {heading: blocks for heading, blocks in found.items() if blocks}


def printed(blocks: Sequence[Block]) -> list[str]:
    """Return the lines that the blocks of Python should print, from the comments after `print(...)`."""
    return [text for block in blocks for text in PRINTED.findall(block.text)]


def run(blocks: Sequence[Block], folder: Path, **environment: Any) -> None:
    """Run blocks in a folder, and compare what Python prints with the comments.

    Args:
        blocks: blocks of one section. Commands may set variables for later blocks; their output is not compared.
        folder: working folder, where files are written.
        environment: additional environment variables.

    Raises:
        AssertionError: a block fails, Python prints something else, or there is a warning about anything but unscored
            samples.
    """
    programs, log = Path(sys.executable).parent, "commands.log"
    script = ["set -eu"]
    for block in blocks:
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "python":
            script.append(f"timeout 200 python -W error - <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON")
        else:
            script.append(f"{{ {block.text}}} >> {log} 2>&1")
    variables = clean_environment(
        PYTHONPATH=os.pathsep.join([str(ROOT / "client"), str(ROOT / "verifier")]),
        PATH=os.pathsep.join([str(programs), os.environ["PATH"]]),
        **environment,
    )
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    said = (folder / log).read_text() if (folder / log).exists() else ""
    assert done.returncode == 0, said + done.stderr
    assert all(UNSCORED in line for line in done.stderr.splitlines()), done.stderr
    assert printed(blocks) == done.stdout.splitlines()
