"""Reward functions as TRL calls them, without TRL; tests/trainers/running_trl.py has both."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from rewardstack.errors import ScoringError
from rewardstack.score import STATUSES
from rewardstack.trainers.trl import RewardFunc, reward_func
from tests.support.servers import FaultServer

PROMPTS = [[{"role": "user", "content": "6 * 7?"}]] * 3
COMPLETIONS = [[{"role": "assistant", "content": text}] for text in ("42", "forty-two", "")]
ANSWERS: list[Any] = ["42", {"unread": "42"}, "42"]


async def called(func: RewardFunc, **given: Any) -> list[float | None]:
    """Its rewards, awaited where they must be."""
    made: Any = func
    rewards = made(prompts=PROMPTS, completions=COMPLETIONS, completion_ids=[[1]] * 3, answer=ANSWERS, **given)
    values: list[float | None] = await rewards if inspect.isawaitable(rewards) else rewards
    return values


@pytest.mark.parametrize("blocking", [True, False])
async def test_values_and_counts(server: FaultServer, blocking: bool) -> None:
    """A completion without a value is None; counts and reasons go to TRL's log, under the name of the reward."""
    metrics: dict[str, float] = {}
    extra: dict[str, list[str]] = {}
    func = pickle.loads(pickle.dumps(reward_func("gsm8k", name="right", blocking=blocking)))  # noqa: S301

    rewards = await called(func, log_metric=metrics.__setitem__, log_extra=extra.__setitem__, trainer_state=None)

    assert [2.0, None, 0.0] == rewards
    counts = {"ok": 2.0, "fallback": 0.0, "unscored": 1.0, "failed": 0.0}
    assert {f"rewards/right/{status}": counts[status] for status in STATUSES} | {"rewards/right/zeros": 0.5} == metrics
    assert ["right_reason"] == [*extra]
    assert [False, True, False] == ["ground_truth" in reason for reason in extra["right_reason"]]


async def test_tokens() -> None:
    """TRL's completion ids are counted, so that `overlong` needs no column."""
    limits = {"max_response_length": 4, "overlong_buffer": 2}
    function: Any = reward_func("overlong", reference=None, extra_info=limits)
    given = {"prompts": ["p"] * 2, "completions": ["a", "b"], "completion_ids": [[1, 2], [1, 2, 3, 4]]}
    assert [0.0, -1.0] == await function(**given)


@pytest.mark.parametrize(("given", "name"), [({"data_source": "gsm8k"}, "gsm8k"), ({}, "rewardstack")])
def test_name(given: dict[str, Any], name: str) -> None:
    """TRL's logs name a reward by its source, where no name is given."""
    assert name == reward_func(**given).__name__


async def test_an_outage(server: FaultServer) -> None:
    """A server that fails leaves None, or ends the training where that is wanted."""
    server.set(mode="503")
    dead: dict[str, Any] = {"timeout": 0.3, "extra_info": {"server_url": server.url}}  # expires

    assert [None] * 3 == await called(reward_func("gsm8k", **dead))
    with pytest.raises(ScoringError, match="failed"):
        await called(reward_func("gsm8k", on_error="raise", **dead))


@pytest.mark.parametrize("blocking", [True, False])
def test_dispatch(blocking: bool) -> None:
    """TRL awaits the async function and not the blocking one, before and since 1.14, also after pickling."""
    func: Any = pickle.loads(pickle.dumps(reward_func("gsm8k", blocking=blocking)))  # noqa: S301
    up_to_1_13 = inspect.iscoroutinefunction(func)
    since_1_14 = inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(func.__call__)
    assert (up_to_1_13, since_1_14) == (not blocking, not blocking)
