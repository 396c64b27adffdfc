"""The summary of a batch's rewards, which the client logs."""

from __future__ import annotations

import logging

import pytest

from rewardstack import Request, Score, score
from rewardstack.core.reward_summary import RewardSummary
from tests.support.servers import FaultServer


def sample(value: float | None, group: str = "a", **more: object) -> tuple[Request, Score]:
    return Request("x", "", None, {"group_id": group}), Score(value, **more)  # type: ignore[arg-type]


def summary(*samples: tuple[Request, Score]) -> RewardSummary | None:
    return RewardSummary.from_batch([request for request, _ in samples], [one for _, one in samples])


def test_summary() -> None:
    """Only rewards count, and only parts that all of them have; a policy's 0 for a failed sample is no reward."""
    found = summary(
        sample(1.0, parts={"a": 1.0, "b": 0.0}),
        sample(0.0, parts={"a": 0.5}),
        sample(0.5, "b", status="fallback", parts={"a": 0.0}),
        sample(0.5, "b", parts={"a": 0.5}),
        sample(0.0, "b", status="failed"),
        sample(None, "b", status="unscored"),
        sample(0.1, "alone", parts={"a": 0.5}),
    )

    assert found is not None
    assert (found.size, found.zeros, found.groups, found.flat, found.parts) == (5, 1, 2, 1, {"a": 0.5})
    assert found.mean == pytest.approx(0.42) and found.std == pytest.approx(0.354401, abs=1e-6)


def test_equal_rewards_have_no_deviation() -> None:
    """Rounding is no deviation; without a reward there is no summary."""
    equal = summary(*[sample(0.1)] * 7)

    assert equal is not None and equal.std == 0.0
    assert summary(sample(None, status="failed")) is None


def test_logged(server: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """A call with several samples logs a line a route."""
    with caplog.at_level(logging.INFO, "rewardstack.client"):
        score([Request("gsm8k", "42", "42"), Request("gsm8k", "43", "42"), Request("math", "1", "2")])

    lines = [one.getMessage() for one in caplog.records if one.name == "rewardstack.client"]
    assert [line.partition(":")[0] for line in lines] == ["gsm8k", "math"]
    assert lines[0].startswith("gsm8k: 2 rewards, mean ") and "1 groups with all rewards equal" in lines[0]
