"""What the tests of each trainer share: where the servers are, and how they say what was checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Report = Callable[[int, str], None]


@pytest.fixture(scope="session")
def reward_url() -> str:
    """Of the reward server that `make trainers` has started, whose judge is at `LLM_JUDGE_SERVER_URL`."""
    return os.environ["REWARD_SERVER_URL"]


@pytest.fixture(scope="session")
def report() -> Report:
    """Says how many samples were scored, and in a few words what held; a trainer's line is made of these."""
    path = Path(os.environ["TRAINERS_REPORT"])

    def say(samples: int, checked: str) -> None:
        with path.open("a") as file:
            file.write(f"{samples:,} samples, {checked}\n")

    return say
