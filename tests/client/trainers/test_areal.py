"""`rewardstack.trainers.areal`: the function that AReaL hands to its processes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rewardstack import Request, api
from rewardstack.errors import ScoringError, UnknownSourceError
from rewardstack.score import Score
from rewardstack.trainers import areal
from tests.support.servers import FaultServer

GIVEN = ("What is 6 * 7?", "abc", [1], [2])


@pytest.mark.parametrize("column", areal.REFERENCES)
def test_references(column: str, server: FaultServer) -> None:
    """The reference may stand in each of the columns that data sets have for it."""
    row: dict[str, Any] = {**dict.fromkeys(areal.REFERENCES, float("nan")), column: "1"}
    assert areal.reward(*GIVEN, data_source="gsm8k", **row, messages=[]) == 3.0


def test_route(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row without a route is scored by that of `REWARD_TYPE`, and its `extra_info` holds the options."""
    monkeypatch.setenv("REWARD_TYPE", "gsm8k")
    assert areal.reward(*GIVEN, answer="1", extra_info={"timeout": 60}) == 3.0
    with pytest.raises(UnknownSourceError, match="gsm9k"):
        areal.reward(*GIVEN, data_source="gsm9k", answer="1")


@pytest.mark.parametrize("row", [{}, {"answer": None}, {"answers": "1"}])
def test_no_reference(row: dict[str, Any], server: FaultServer) -> None:
    """A row without a reference is an error that says in which columns it is looked for."""
    server.set(said={"value": None, "status": "unscored", "reason": "none", "cause": "no_reference"})
    with pytest.raises(ScoringError, match="unscored: none; put it into one of the columns answer, "):
        areal.reward(*GIVEN, data_source="gsm8k", **row)


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        ({}, {"prompt": GIVEN[0]}),
        ({"extra_info": {"question": "6 * 7?", "seed": None}}, {"question": "6 * 7?"}),
        ({"extra_info": {"prompt": None, "question": None}}, {"prompt": GIVEN[0]}),
        ({"question": "6 * 7?", "problem": ["none"]}, {"question": "6 * 7?"}),
        ({"problem": "6 * 7?", "extra_info": {"problem": "7 * 6?"}}, {"problem": "7 * 6?"}),
    ],
    ids=["nothing", "extra_info", "null", "column", "both"],
)
def test_own_task(row: dict[str, Any], asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the row says of the task precedes the prompt, which has a chat template; null says nothing."""
    requests: list[Request] = []
    monkeypatch.setattr(api, "score", lambda given, **_: [Score(1.0) for _ in map(requests.append, given)])
    assert areal.reward(*GIVEN, data_source="gsm8k", answer="1", **row) == 1.0
    assert requests == [Request("gsm8k", GIVEN[1], "1", asked)]


def test_silence(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer is an error before AReaL stops waiting and counts 0."""
    assert areal.TIMEOUT < 15
    assert areal.reward(*GIVEN, data_source="gsm8k", answer="1") == 3.0
    monkeypatch.setattr(areal, "TIMEOUT", 0.2)  # expires
    server.freeze()
    with pytest.raises(ScoringError, match=r"failed: no answer (within 0\.[0-9]+ s|in time)"):
        areal.reward(GIVEN[0], "silence", [1], [2], data_source="gsm8k", answer="1")


def test_picklable() -> None:
    """The function travels to another process by its name."""
    assert b"rewardstack.trainers.areal" in pickle.dumps(areal.reward)
