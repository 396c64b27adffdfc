"""The line of a log that tells why a program ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.stack.console import CAUSE_CHARACTERS, error_in, first_error
from services.up.native.up import StartupTimeout

CASES = json.loads((Path(__file__).parents[1] / "cases/first_errors.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["holds"])
def test_cause(case: dict) -> None:
    """Each log's first error is found, without what stands before it; one without any tells nothing."""
    assert error_in("\n".join(case["log"])) == case["cause"]


def test_bounded() -> None:
    """What is said of it is bounded, however long the line."""
    assert len(error_in(f"ValueError: {'x' * 10_000}")) == CAUSE_CHARACTERS


def test_of_this_start(tmp_path: Path) -> None:
    """Lines of an earlier start are ignored, unless the log was truncated since."""
    log = tmp_path / "judge.log"
    assert first_error(log) == ""
    log.write_text("OSError: an old one\n")
    before = log.stat().st_size
    with log.open("a") as file:
        file.write("ValueError: a new one\n")
    assert first_error(log, before) == "ValueError: a new one"
    log.write_text("KeyError: 1\n")
    assert first_error(log, before) == "KeyError: 1"


@pytest.mark.parametrize(
    ("cause", "helps"),
    [
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "ulimit -u"),
        ("RuntimeError: can't start new thread", "ulimit -u"),
        ("ImportError: mine", "REWARD_FUNCTIONS"),
    ],
)
def test_remedy(cause: str, helps: str) -> None:
    """A service that was refused a process is helped by a higher limit, and not by its settings."""
    said = str(StartupTimeout("worker-2", f"exited during startup: {cause}", [])).partition(" — ")[2]
    assert helps in said
