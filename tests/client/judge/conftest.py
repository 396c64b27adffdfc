"""Fixtures of the judge's tests: a fake judge with faults on demand, and samples."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, client
from rewardstack.cache import link
from rewardstack.pipeline import missing
from rewardstack.transport import timing
from rewardstack.transport.attempt import LatencyTracker
from tests.support.clock import Clock
from tests.support.servers import FaultServer

FAKE_JUDGE = Path(__file__).with_name("fake_judge.py")
JUDGE = "llm_judge_remote_test"


@pytest.fixture(scope="session")
def one_judge() -> Iterator[FaultServer]:
    """Run the fake judge that all tests share."""
    server = FaultServer(script=FAKE_JUDGE)
    yield server
    server.kill()


@pytest.fixture
def judge(one_judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """Reset the fake judge and the client, and set LLM_JUDGE_SERVER_URL.

    A request counts as stuck only after a minute, and a judge that is slow is not probed, because on a busy machine,
    hedges and retries would change the number of requests. For the same reason, Redis has a minute to answer.
    """
    monkeypatch.setattr(timing, "MIN_STUCK", 60.0)
    monkeypatch.setattr(timing, "PROBE_AFTER", 3600.0)
    monkeypatch.setattr(link, "TIMEOUT", 60.0)
    monkeypatch.setattr(client, "_clients", {})  # a client of an earlier test may know that the judge stalls
    forget(one_judge, monkeypatch)
    yield one_judge
    for loop, used in client._clients.items():  # otherwise it keeps probing a judge that stalled
        asyncio.run_coroutine_threadsafe(used.close(), loop).result(60)


class JudgeClock(Clock):
    """A clock that a test sets forward.

    Attributes:
        verdicts: number of replies to chat requests that the client has received.
    """

    verdicts = 0


@pytest.fixture
def clock(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> JudgeClock:
    """Replace the clock of this process, to let time pass without waiting."""
    one, record = JudgeClock(monkeypatch), LatencyTracker.record_answer

    def count(self: LatencyTracker, path: str, sent_at: float) -> None:
        record(self, path, sent_at)
        one.verdicts += path.endswith("/chat/completions")

    monkeypatch.setattr(LatencyTracker, "record_answer", count)
    return one


def forget(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the judge, the client's cached verdicts and its counted warnings, so that a case starts like a new test."""
    missing.missing_warnings.log_repeats(math.inf)
    judge.set(reset=True)
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", judge.url)
    monkeypatch.setenv("JUDGE_REVISION", uuid.uuid4().hex)


def sample(solution: str = "It is 42.", reference: Any = "42", **extra: Any) -> Request:
    """Return a sample; `extra` are additional fields of its `extra_info`."""
    return Request(JUDGE, solution, reference, {"problem": "What is 6 times 7?", **extra})


def asked(judge: FaultServer) -> list[dict[str, Any]]:
    """Return the bodies of the chat requests that the judge got."""
    bodies: list[dict[str, Any]] = judge.stats()["bodies"]
    return bodies
