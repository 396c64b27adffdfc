"""Warnings about samples without a score are few, however many calls an outage fails."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardstack import compute_score
from rewardstack.pipeline import missing
from rewardstack.pipeline.missing import IMMEDIATE
from tests.support.servers import free_port
from tests.support.waiting import eventually


@pytest.fixture
def away(needs_process: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A reward server that is not there, and a log that is captured."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", "0.5")
    caplog.set_level(logging.WARNING, "rewardstack.pipeline")


def fail(count: int) -> None:
    """Score samples by single calls from threads, as verl does."""
    with ThreadPoolExecutor(8) as pool:
        assert {0.0} == {*pool.map(lambda at: compute_score("math", f"{at}", "1"), range(count))}


@pytest.mark.usefixtures("away")
def test_repeated_warnings_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The first calls of an outage are logged at once, the others of the minute together, with their count."""
    fail(100)
    first = len(caplog.messages)  # "no answer in time", then "failing fast"
    assert IMMEDIATE <= first <= 3 * IMMEDIATE and all(
        "1 of 1 samples failed; first error: " in line for line in caplog.messages
    )
    missing.missing_warnings.log_repeats(float("inf"))
    counted = [int(line.split(": ")[1].split()[0]) for line in caplog.messages[first:]]
    assert sum(counted) == 100 - first and all(
        " more samples failed within 60 s; " in line for line in caplog.messages[first:]
    )


@pytest.mark.usefixtures("away")
def test_what_was_counted_is_logged_by_itself(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted is logged when its minute ends, although no further call is made."""
    monkeypatch.setattr(missing, "PERIOD", 3.0)
    fail(64)
    eventually(lambda: any(" more samples failed within 3 s; " in line for line in caplog.messages))
