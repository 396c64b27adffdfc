"""AReaL's own wrapper of reward functions, which hands them to processes, waits, and tries again.

`areal` and `areal.api` are stood in for by empty packages of the same folders, for the former imports torch and Ray;
`areal.api.reward_api`, its logger and the import of a function by its name are as they were installed. AReaL's 15
seconds are 120 here, and the function's 12 are 60, or 1 where no server answers.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from rewardstack.errors import ScoringError
from rewardstack.trainers import areal as rewards
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.trainers.conftest import Report
from tests.trainers.hollow import hollow
from tests.trainers.outage import refusing

NAME = "rewardstack.trainers.areal.reward"
SECONDS = 120


@pytest.fixture(scope="module")
def wrapper() -> Iterator[Any]:
    """The class, from the installed package."""
    hollow("areal", "api")
    from areal.api.reward_api import AsyncRewardWrapper

    yield AsyncRewardWrapper


@pytest.fixture
def wrapped(wrapper: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The function as AReaL's workflow `rlvr` has it, found by its name, with processes that know a test's settings."""
    from areal.utils.dynamic_import import import_from_string

    monkeypatch.setattr(rewards, "TIMEOUT", SECONDS / 2)
    monkeypatch.setattr(wrapper, "_executors", {})
    yield wrapper(import_from_string(NAME), timeout_seconds=SECONDS, max_workers=2)
    for pool in wrapper._executors.values():
        pool.shutdown(cancel_futures=True)


def rewarded(wrapped: Any, rows: list[dict[str, Any]]) -> list[Any]:
    """What AReaL has for completions, a row each, of which `completion` is taken out."""

    async def run() -> list[Any]:
        calls = (wrapped("What is 6 * 7?", row.pop("completion"), [1], [2], **row) for row in map(dict, rows))
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(run())


def test_rewards(wrapped: Any, report: Report) -> None:
    """In AReaL's processes each row is scored by its route, whatever its reference is called, as the page has it."""
    assert f'reward_fn="{NAME}"' in block("docs/trainers.md", "python", "workflow_kwargs")
    names = rewards.REFERENCES
    rows = [
        {"data_source": "gsm8k", "completion": f"#### {number}", names[number % len(names)]: "42"}
        for number in range(32, 64)
    ]
    assert rewarded(wrapped, rows) == [float(number == 42) for number in range(32, 64)]
    report(32, "by route, in its processes")


def test_judge(wrapped: Any, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """Rows without a route are scored by that of `REWARD_TYPE`, such as the judge."""
    monkeypatch.setenv("REWARD_TYPE", "llm_judge_remote")
    rewards_of = rewarded(wrapped, [{"completion": f"It is {number}.", "answer": "42"} for number in range(4)])
    assert all(0 <= one <= 1 for one in rewards_of)
    report(4, "the judge")


def test_recovery(wrapped: Any, reward_url: str, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """A server that answers 503 twice and then recovers costs no reward."""
    with refusing(reward_url, 2) as way:
        monkeypatch.setenv("REWARD_SERVER_URL", way.url)
        assert rewarded(wrapped, [{"data_source": "gsm8k", "completion": "####  42", "answer": "42"}]) == [1.0]
    report(1, "503 twice, then scored")


@pytest.mark.parametrize("how", ["nobody", "silence"])
def test_outage(how: str, wrapped: Any, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    """With no server, or one that never answers, its four tries end in an error before it would count 0."""
    monkeypatch.setattr(rewards, "TIMEOUT", 1.0)  # expires
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = free_port() if how == "nobody" else silent.getsockname()[1]
        monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{port}")
        [error] = rewarded(wrapped, [{"data_source": "gsm8k", "completion": f"#### 42 {how}", "answer": "42"}])
    assert isinstance(error, ScoringError) and "failed: " in str(error), error
    report(1, f"{how}: an error after its four tries, not 0")


def test_no_reference(wrapped: Any, report: Report) -> None:
    """A row without a reference is an error that says under which names it is looked for."""
    [error] = rewarded(wrapped, [{"data_source": "gsm8k", "completion": "#### 42", "solutions": "42"}])
    assert isinstance(error, ScoringError) and "put it into one of the columns answer" in str(error), error
    report(1, "no reference: an error that names the columns")
