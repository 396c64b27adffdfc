"""A verdict is a function of response, reference and options."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.verifier.all_verdicts import cases

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 20
AT_A_TIME = 4


@pytest.fixture
def busy_cores(needs_process: None) -> Iterator[None]:
    """Keep every core busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("busy_cores")
def test_same_everywhere() -> None:
    """Every field of every verdict is the same for each hash seed, in any order, in threads, on busy cores."""
    printed: set[str] = set()
    for first in range(0, PROCESSES, AT_A_TIME):
        running = [_start(seed) for seed in range(first, min(first + AT_A_TIME, PROCESSES))]
        printed |= {one.communicate()[0] for one in running}
        assert [one.returncode for one in running] == [0] * len(running)
    assert len(printed) == 1
    assert sum(int(line.split()[1]) for line in printed.pop().splitlines()) == len(cases())


def _start(seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.verifier.all_verdicts", str(seed)]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
