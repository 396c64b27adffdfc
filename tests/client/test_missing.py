"""Warnings about samples without a score are few, however many calls an outage fails."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardstack import compute_score
from rewardstack.pipeline import missing
from rewardstack.pipeline.missing import IMMEDIATE
from rewardstack.score import MISSING_LOG
from tests.support.servers import free_port
from tests.support.waiting import eventually


@pytest.fixture
def away(needs_process: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A reward server that is not there, and a log that is captured."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "0.5")  # expires
    caplog.set_level(logging.WARNING, "rewardstack.pipeline")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings about samples; that the server has been away for seconds is another one."""
    return [one.getMessage() for one in caplog.records if one.name == MISSING_LOG]


def fail(count: int) -> None:
    """Score samples by single calls from threads, as verl does."""
    with ThreadPoolExecutor(8) as pool:
        assert {0.0} == {*pool.map(lambda at: compute_score("math", f"{at}", "1"), range(count))}


@pytest.mark.usefixtures("away")
def test_repeated_warnings_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The first calls of an outage are logged at once, the others of the minute together, with their count."""
    fail(100)
    first = warnings(caplog)  # "no answer in time", then "failing fast"
    assert IMMEDIATE <= len(first) <= 3 * IMMEDIATE
    assert all("1 of 1 samples failed; first error: " in line for line in first)
    missing.missing_warnings.log_repeats(float("inf"))
    later = warnings(caplog)[len(first) :]
    assert sum(int(line.split(": ")[1].split()[0]) for line in later) == 100 - len(first)
    assert all(" more samples failed within 60 s; " in line for line in later)


@pytest.mark.usefixtures("away")
def test_what_was_counted_is_logged_by_itself(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was counted is logged when its minute ends, although no further call is made."""
    monkeypatch.setattr(missing, "PERIOD", 3.0)
    fail(64)
    eventually(lambda: any(" more samples failed within 3 s; " in line for line in warnings(caplog)))
