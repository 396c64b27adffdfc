"""Pages whose examples are run as they are printed: files are written, commands and Python run in their order."""

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
    """One code block: its language, the file it is to be written to, its text."""

    language: str
    file: str
    text: str


def sections(page: str) -> dict[str, list[Block]]:
    """The code blocks of a page in `docs/` under each heading that has any."""
    parts = re.split(r"^## (.*)\n", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {heading: [Block(*match) for match in FENCE.findall(body)] for heading, body in bodies.items()}
    return {heading: blocks for heading, blocks in found.items() if blocks}


def printed(blocks: Sequence[Block]) -> list[str]:
    """What the blocks of Python print, by their comments."""
    return [text for block in blocks for text in PRINTED.findall(block.text)]


def run(blocks: Sequence[Block], folder: Path, **environment: Any) -> None:
    """Runs the blocks in a folder: they print what the comments say, and warn of nothing but samples without a score.

    Args:
        blocks: of one section; commands may set variables for what follows, and what they print does not count.
        folder: where files are written.
        environment: variables.
    """
    programs, log = Path(sys.executable).parent, "commands.log"
    script = ["set -eu"]
    for block in blocks:
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "python":
            script.append(f"timeout 50 python -W error - <<'END_OF_PYTHON'\n{block.text}END_OF_PYTHON")
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
        timeout=60,
        check=False,
    )
    said = (folder / log).read_text() if (folder / log).exists() else ""
    assert done.returncode == 0, said + done.stderr
    assert all(UNSCORED in line for line in done.stderr.splitlines()), done.stderr
    assert printed(blocks) == done.stdout.splitlines()
