"""`REWARDSTACK_MAX_FAILURE_RATE`: a run ends when too many of its last samples failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from rewardstack import Request, acompute_score, compute_score, compute_score_batched, score
from rewardstack.cause import Cause
from rewardstack.core import failure_rate
from rewardstack.core.failure_rate import FailureWindow
from rewardstack.errors import BudgetError, FailureRateError
from rewardstack.score import Score
from rewardstack.trainers import areal, openrlhf, slime, verl
from rewardstack.trainers.columns import Columns
from rewardstack.trainers.ms_swift import reward as swift_reward
from rewardstack.trainers.trl import reward_func
from tests.client.judge.conftest import judge, one_judge, sample
from tests.support.servers import FaultServer
from tests.support.table import Table

__all__ = ["judge", "one_judge"]

FAILED = {"value": None, "status": "failed", "reason": "judge 7 is away for 3.2 s"}
ROW: Any = ("gsm8k", "abc", "1", {})
MESSAGES = [[{"role": "user", "content": "?"}]]
SAMPLE = SimpleNamespace(index=1, prompt="p", response="abc", label="1", metadata={"data_source": "gsm8k"})


@pytest.fixture(autouse=True)
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of four samples of which two may fail, with nothing in it."""
    monkeypatch.setattr(failure_rate, "_windows", WeakKeyDictionary())
    monkeypatch.setenv("REWARDSTACK_MAX_FAILURE_RATE", "0.5")
    monkeypatch.setenv("REWARDSTACK_FAILURE_WINDOW", "4")
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")


def samples(*texts: str) -> list[Request]:
    return [Request("gsm8k", text, "1") for text in texts]


def test_off_by_default(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the setting any number of samples may fail."""
    monkeypatch.delenv("REWARDSTACK_MAX_FAILURE_RATE")
    server.set(said=FAILED)
    assert ["failed"] * 9 == [one.status for one in score(samples(*"abcdefghi"))]


def test_only_failures_of_the_window_count(server: FaultServer) -> None:
    """Unscored samples do not count, nor do failures that have left the window; the error says what to do."""
    server.set(said={**FAILED, "status": "unscored"})
    score(samples(*"abcd"))
    server.set(said=FAILED)
    score(samples(*"ab"))
    server.set(said={})
    score(samples(*"cd"))
    score(samples(*"ef"))
    server.set(said=FAILED)
    score(samples(*"gh"))
    with pytest.raises(FailureRateError) as caught:
        score(samples("i"))
    assert str(caught.value) == (
        "3 of the last 4 samples failed, which is more than REWARDSTACK_MAX_FAILURE_RATE = 0.5 allows for "
        "REWARDSTACK_FAILURE_WINDOW = 4; most frequent reason: judge 7 is away for 3.2 s (3 samples); "
        "fix the cause and resume the run, or raise REWARDSTACK_MAX_FAILURE_RATE (1: never stop)"
    )


def test_the_most_frequent_reason() -> None:
    """Reasons of one cause count as one; the latest of them is quoted."""
    away, refused = Cause.UNREACHABLE, Cause.REJECTED
    failures = [("away", away), ("400", refused), ("gone for 2 s", away), ("422", refused), ("away for 1 s", away)]
    with pytest.raises(FailureRateError, match=r"most frequent reason: away for 1 s \(3 samples\)"):
        FailureWindow().add([Score.failed(reason, cause=cause) for reason, cause in failures], 0.4, 10)


def test_a_spent_budget(judge: FaultServer, server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that the budget refuses count as failed: the next call raises, even if a trainer catches both errors."""
    monkeypatch.setenv("REWARDSTACK_MAX_REQUESTS", "1")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "a failure rate")
    with pytest.raises(BudgetError, match="REWARDSTACK_MAX_REQUESTS: this process has used 1 of 1") as refused:
        score([sample(text, temperature=0) for text in ("a", "b", "c", "d")])
    assert ["failed", "failed", "failed", "ok"] == sorted(one.status for one in refused.value.scores)
    with pytest.raises(FailureRateError, match="3 of the last 4 samples failed.* reason: REWARDSTACK_MAX_REQUESTS: "):
        score(samples("a"))


CALLS: dict[str, Callable[[], Any]] = {
    "score": lambda: score(samples("abc")),
    "on_error raise": lambda: score(samples("abc"), on_error="raise"),
    "compute_score": lambda: compute_score(*ROW),
    "compute_score_batched": lambda: compute_score_batched(*([one] for one in ROW)),
    "acompute_score": lambda: acompute_score(*ROW),
    "areal": lambda: areal.reward("p", "abc", [], [], data_source="gsm8k", answer="1"),
    "ms_swift": lambda: swift_reward("r", Columns("gsm8k", None, (), {}, ""), "zero", None)(["abc"], MESSAGES),
    "openrlhf": lambda: openrlhf.reward_func(["pabc"], ["p"], ["1"]),
    "slime": lambda: slime.reward(SimpleNamespace(rm_type=None), SAMPLE),
    "trl": lambda: reward_func("gsm8k")(["p"], ["abc"], answer=["1"]),  # type: ignore[operator]
    "trl, blocking": lambda: reward_func("gsm8k", blocking=True)(["p"], ["abc"], answer=["1"]),  # type: ignore[operator]
    "verl": lambda: verl.compute_score(*ROW),
    "verl, sync": lambda: verl.compute_score_sync(*ROW),
    "verl, batch": lambda: verl.compute_score_batched(*([one] for one in ROW)),
}


def test_every_integration(server: FaultServer, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a trainer calls raises the error."""
    monkeypatch.setenv("REWARDSTACK_FAILURE_WINDOW", "1")
    server.set(said=FAILED)
    for name, call in CALLS.items():
        with table.case(name), pytest.raises(FailureRateError, match="judge 7 is away"):
            outcome = call()
            if asyncio.iscoroutine(outcome):
                asyncio.run(outcome)


def test_verls_concurrent_calls(server: FaultServer) -> None:
    """Each call of a batch raises the error, and no sample is scored again for it."""
    server.set(said=FAILED)

    async def batch() -> list[Any]:
        calls = [verl.compute_score("gsm8k", "a" * length, "1", {}) for length in range(1, 9)]
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [FailureRateError] * 8 == [type(one) for one in asyncio.run(batch())]
    assert 8 == server.stats()["items"]
