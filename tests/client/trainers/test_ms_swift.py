"""Rewards as ms-swift calls them, without ms-swift; tests/trainers/running_ms_swift.py has both."""

from __future__ import annotations

from typing import Any

import pytest

from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import OnError
from rewardstack.trainers.columns import Columns
from rewardstack.trainers.ms_swift import Reward, reward
from tests.support.servers import FaultServer

MESSAGES = [[{"role": "user", "content": "6 * 7?"}, {"role": "assistant", "content": "42"}]] * 2
ROWS = {"completions": ["42", "42"], "messages": MESSAGES, "trainer_state": None, "request_id": ["a", "b"]}


def made(on_error: OnError = "raise", **options: Any) -> Reward:
    return reward("right", Columns("gsm8k", "solution", (), {}, "none"), on_error, options.get("timeout"))


async def test_values(server: FaultServer) -> None:
    """Rows with a value are numbers; the function has its name in ms-swift's logs."""
    assert [2.0, 2.0] == await made()(**ROWS, solution=["42", "42"])
    assert "right" == made().__name__


async def test_tokens() -> None:
    """ms-swift's token ids are counted, so that `overlong` needs no server and no column."""
    limits = {"max_response_length": 4, "overlong_buffer": 2}
    function = reward("long", Columns("overlong", None, (), limits), "raise", None)
    assert [0.0, -0.5] == await function(**ROWS, response_token_ids=[[1, 2], [1, 2, 3]])


async def test_a_row_without_a_value(server: FaultServer) -> None:
    """An unreadable reference and a failing server are errors with row, cause and remedy; zero must be asked for."""
    with pytest.raises(
        ScoringError, match=r"^reward right: sample 1: unscored: ground_truth: .*counts.*as 0.*register"
    ):
        await made()(**ROWS, solution=["42", {"unread": "42"}])
    assert [2.0, 0.0] == await made("zero")(**ROWS, solution=["42", {"unread": "42"}])

    server.set(mode="503", headers={"Retry-After": "86400"})
    with pytest.raises(ScoringError, match=r"^reward right: sample 0: failed: .*503"):
        await made()(**ROWS, solution=["43", "43"])


async def test_timeout(server: FaultServer) -> None:
    """The reward's own timeout ends the wait for a server that never answers."""
    server.set(mode="hang")
    with pytest.raises(ScoringError, match=r"^reward right: sample 0: failed: "):
        await made(timeout=0.5)(**ROWS, solution=["43", "43"])  # expires


def test_none_is_refused() -> None:
    """None, which ms-swift would count as 0, cannot be asked for."""
    with pytest.raises(RequestError, match="^on_error: ms-swift counts a missing reward as 0") as raised:
        made("none")

    assert "on_error" == raised.value.field
