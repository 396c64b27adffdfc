"""Run a benchmark in its own process, pass its output through, and read its figures even if it fails."""

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
"""Number of lines of a benchmark's output that are kept for the page."""


def run(one: Benchmark, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run a benchmark and return its result.

    Args:
        one: benchmark to run.
        arguments: its command-line arguments.

    Returns:
        `name`, `about` and `method`: from the description of the benchmark.
        `arguments`: command-line arguments as text.
        `state`: "failed", "done", or "skipped" (it succeeded without recording a figure).
        `status`: exit status.
        `seconds`: duration.
        `figures`: recorded figures.
        `said`: last lines of the output.
    """
    print(f"==> {' '.join([one.name, *arguments])}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figures.jsonl")
        status, last_lines = _process([sys.executable, str(one.script), *arguments], {**os.environ, FILE: str(path)})
        figures = read(path)
    return {
        "name": one.name,
        "about": one.about,
        "method": one.method,
        "arguments": " ".join(arguments),
        "state": "failed" if status else "done" if figures else "skipped",
        "status": status,
        "seconds": time.monotonic() - started,
        "figures": figures,
        "said": last_lines,
    }


def _process(command: list[str], environment: dict[str, str]) -> tuple[int, list[str]]:
    """Run a command and print its output as it arrives; return the exit status and the last lines."""
    environment["PYTHONUNBUFFERED"] = "1"
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last_lines.append(line.rstrip())
    return process.returncode, list(last_lines)
