"""One benchmark run as a process of its own: what it prints is passed on, and its figures are read, however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.catalogue import Benchmark
from benchmarks.figures import FILE, read

LAST_LINES = 8
"""Of what a benchmark prints, kept for the page."""


def run(one: Benchmark, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """What became of a benchmark.

    Args:
        one: what is run.
        arguments: of its command.

    Returns:
        Its description, `state` ("done", "failed", or "left out" where it ended well without a figure), exit `status`,
        `seconds`, `figures` and the last lines that it `said`.
    """
    print(f"==> {' '.join([one.name, *arguments])}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.jsonl")
        status, said = _process([sys.executable, str(one.script), *arguments], {**os.environ, FILE: str(path)})
        figures = read(path)
    return {
        "name": one.name,
        "about": one.about,
        "method": one.method,
        "arguments": " ".join(arguments),
        "state": "failed" if status else "done" if figures else "left out",
        "status": status,
        "seconds": time.monotonic() - started,
        "figures": figures,
        "said": said,
    }


def _process(command: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """The exit status of a command, and the last lines of its output, which is printed as it comes."""
    environment["PYTHONUNBUFFERED"] = "1"
    said: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            said.append(line.rstrip())
    return process.returncode, list(said)
