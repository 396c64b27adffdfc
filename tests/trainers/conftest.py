"""Fixtures of the tests that run a trainer: the server's URL, and a report of what was checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

Report = Callable[[int, str], None]
SERVICES = {name: value for name, value in os.environ.items() if name.endswith("_SERVER_URL")}
"""The services that `make trainers` has started; read now, because tests/conftest.py removes a stack's settings."""


@pytest.fixture(scope="session", autouse=True)
def services() -> None:
    """Let the tests, and the processes that they start, use the services."""
    os.environ.update(SERVICES)


@pytest.fixture(scope="session")
def reward_url() -> str:
    """Return the URL of the reward server that `make trainers` has started; its judge is `LLM_JUDGE_SERVER_URL`."""
    return SERVICES["REWARD_SERVER_URL"]


@pytest.fixture(scope="session")
def report() -> Report:
    """Return a function that reports the number of samples and, in a few words, what was checked.

    `make trainers` prints these reports as the trainer's line.
    """
    path = Path(os.environ["TRAINERS_REPORT"])

    def say(samples: int, checked: str) -> None:
        with path.open("a") as file:
            file.write(f"{samples:,} samples, {checked}\n")

    return say
