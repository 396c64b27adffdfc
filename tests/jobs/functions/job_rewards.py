"""Reward functions for jobs: slow ones, one that waits for a file, and one that fails as long as a file says so."""

from __future__ import annotations

import os
import time
from pathlib import Path

from rewardstack_rules import reward_function


@reward_function
def slow(response: str, reference: str | None = None) -> float:
    """Takes its time; says that it began, and where."""
    begin(response)
    time.sleep(0.3)
    return float(response == reference)


@reward_function
def held(response: str, reference: str | None = None) -> float:
    """Say that it began, and where; end when there is a file `go on` there."""
    begin(response)
    while not Path(os.environ["JOB_TRACES"], "go on").exists():
        time.sleep(0.02)
    return float(response == reference)


def begin(response: str) -> None:
    """Note that a response has begun to be scored."""
    with Path(os.environ["JOB_TRACES"], "begun").open("a") as file:
        file.write(f"{response}\n")


@reward_function
def flaky(response: str, reference: str | None = None) -> float:
    """Fails for "bad" while there is a file `broken`; writes down each call."""
    traces = Path(os.environ["JOB_TRACES"])
    with (traces / "calls").open("a") as file:
        file.write(f"{response}\n")
    if response == "bad" and (traces / "broken").exists():
        raise OSError("out of order")
    return 1.0
