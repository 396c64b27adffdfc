"""`rewardstack.trainers.slime`: the function that `--custom-rm-path` names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.errors import ScoringError
from rewardstack.trainers import slime
from rewardstack.trainers.columns import TASKS
from tests.support.servers import FaultServer

ARGUMENTS = SimpleNamespace(rm_type="gsm8k")


def sample(response: str, **given: Any) -> SimpleNamespace:
    """What is read of slime's `Sample`."""
    return SimpleNamespace(**{"index": 7, "prompt": "p", "response": response, "label": "1", "metadata": {}, **given})


async def test_one_and_many(server: FaultServer) -> None:
    """A sample has a number, a list of them a list, as `--group-rm` wants it."""
    assert await slime.reward(ARGUMENTS, sample("abc"), further="argument") == 3.0
    assert await slime.reward(ARGUMENTS, [sample("abc"), sample("ab")]) == [3.0, 2.0]
    assert await slime.reward(ARGUMENTS, []) == []


@pytest.mark.parametrize(
    ("metadata", "rm_type", "asked"),
    [
        ({"data_source": "math", "rm_type": "gsm8k"}, "gsm8k", "math"),
        ({"rm_type": "math"}, "gsm8k", "math"),
        (None, "gsm8k", "gsm8k"),
        ({}, None, "exact_match"),
    ],
    ids=["metadata", "rm_type of evaluation data", "--rm-type", "REWARD_TYPE"],
)
async def test_route(
    metadata: Any, rm_type: str | None, asked: str, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The route is that of the sample, else of the command line, else of the environment."""
    monkeypatch.setenv("REWARD_TYPE", "exact_match")
    request = slime._request(SimpleNamespace(rm_type=rm_type), sample("a", metadata=metadata))
    assert (request.data_source, request.extra_info) == (asked, {**(metadata or {}), "prompt": "p"})


def test_tokens() -> None:
    """slime's own count is the sample's `completion_tokens`; 0, before it has counted, says nothing."""
    assert {"completion_tokens": 9, "prompt": "p"} == slime._request(
        ARGUMENTS, sample("a", response_length=9)
    ).extra_info
    stale = sample("a", response_length=0, metadata={"completion_tokens": 3})
    assert {"completion_tokens": 3, "prompt": "p"} == slime._request(ARGUMENTS, stale).extra_info


@pytest.mark.parametrize("name", TASKS)
def test_own_task(name: str) -> None:
    """What the metadata say of the task precedes the prompt, which may have a chat template; null says nothing."""
    metadata = {name: "6 * 7?", "seed": None}
    assert slime._request(ARGUMENTS, sample("a", metadata=metadata)).extra_info == {name: "6 * 7?"}
    assert slime._request(ARGUMENTS, sample("a", metadata={name: None})).extra_info == {"prompt": "p"}


async def test_failed(server: FaultServer) -> None:
    """A sample that failed is an error with the reason; the transport alone decides about retries."""
    server.set(said={"value": None, "status": "failed", "reason": "the judge is away"})
    with pytest.raises(ScoringError, match="sample 7: failed: the judge is away"):
        await slime.reward(ARGUMENTS, [sample("abc")])
    assert 1 == server.stats()["items"]


async def test_no_label(server: FaultServer) -> None:
    """A sample without a label is an error at once, which names the field and the option."""
    server.set(said={"value": None, "status": "unscored", "reason": "none", "cause": "no_reference"})
    with pytest.raises(ScoringError, match="sample 7: unscored: none; .*`label`.* --label-key"):
        await slime.reward(ARGUMENTS, [sample("a", label=None), sample("b", label=None)])
