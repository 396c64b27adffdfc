"""An explanation takes the way of scoring, and tells it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import redis as redis_client

from rewardstack import Request, client, register_route, score
from rewardstack.core.steps import Step, read_steps
from rewardstack.errors import UnknownSourceError
from tests.support.explaining import explained, named
from tests.support.servers import FaultServer, Redis, free_port
from tests.support.waiting import eventually

RIGHT = Request("gsm8k", "#### 42", "42")


def test_references(server: FaultServer) -> None:
    """It tells which references were blank, and what each filter left."""
    extra = {"target_gt": ["a cat", "a dog"], "filter_gt_by_prompt_token": True, "prompt": "Draw a CAT"}
    found = explained(Request("gsm8k", "x", ["a cat", " ", "a dog", "an ox"], extra))
    [request] = named(found.steps, "request")
    assert (request["references"], request["blank references"]) == (["a cat", "a dog", "an ox"], 1)
    assert request["left by target_gt"] == ["a cat", "a dog"]
    assert request["left by filter_gt_by_prompt_token"] == ["a cat"]


def test_a_key_is_not_told(server: FaultServer) -> None:
    """No API key of a sample's stands in a step, whatever it is for, nor does one that is the password of a URL."""
    refused = server.url.replace("http://", "http://any:very-secret@")
    for url, status in ((server.url, "ok"), (refused, "unscored")):
        keys = {"api_key": "very-secret", "hub_api_key": "very-secret"}
        found = explained(Request("gsm8k", "#### 42", "42", {**keys, "server_url": url}))
        assert found.score is not None
        assert found.score.status == status
        assert "very-secret" not in json.dumps(found.record())


@pytest.mark.parametrize("on_error", ["zero", "none", "raise"])
@pytest.mark.parametrize(
    "request_",
    [Request("gsm8k", None, "42"), Request("gsm8k", "x", "42", {"timeout": -1})],
)
def test_a_malformed_request(server: FaultServer, request_: Request, on_error: Any) -> None:
    """What cannot be read says so in its step, and has the score that scoring gives it."""
    found = explained(request_, on_error=on_error)
    [request] = named(found.steps, "request")
    assert found.score is not None and (found.score.status, found.score.reason) == ("unscored", request["error"])
    assert found.score.value == (0.0 if on_error == "zero" else None)
    assert found.score.field == score([request_], on_error="none")[0].field


def test_no_route() -> None:
    """A source that no route takes is an error that lists the routes, as it is of scoring."""
    with pytest.raises(UnknownSourceError, match="available: "):
        explained(Request("nothing", "x"))


def test_a_setting_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where scoring raises, the explanation has the error as its last step, and no score."""
    monkeypatch.setitem(sys.modules, "rewardstack_rules", None)
    found = explained(RIGHT)
    assert (found.score, found.steps[-1].name) == (None, "stopped")
    assert "REWARD_SERVER_URL is not set" in found.error
    assert found.steps[-1].facts["field"] == "REWARD_SERVER_URL"


def test_a_service_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a service does not answer, its exchange and the step that needed it have the error."""
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", "0.3")  # expires: nothing listens there
    found = explained(RIGHT)
    [key], [exchange, *_] = named(found.steps, "key"), named(found.steps, "exchange")
    assert key["error"] and exchange["error"] and exchange["request"] == "GET /v1/reward_types"
    assert found.score is not None and (found.score.status, found.score.reason) == ("failed", key["error"])


def test_an_old_reward_server(server: FaultServer) -> None:
    """A reward server without /v1/explain is said to be one, and its plain score stands."""
    found = explained(RIGHT)
    [told] = named(found.steps, "the reward server")
    assert "explanations are not supported" in told["note"]
    assert found.score is not None and found.score.value == score([RIGHT])[0].value


def test_a_cached_score(server: FaultServer, redis: Redis) -> None:
    """A score that Redis has is the score, and is not computed again; nothing is kept."""
    fresh = explained(RIGHT)
    kept = redis_client.Redis.from_url(redis.url)
    assert not kept.dbsize(), "an explanation keeps nothing"
    [scored] = score([RIGHT])
    eventually(kept.dbsize)
    before = server.stats()["items"]
    cached = explained(RIGHT)
    assert named(fresh.steps, "the cache")[0]["found"] is False
    assert named(cached.steps, "the cache")[0] == {
        "place": "Redis",
        "found": True,
        "value": scored.value,
        "status": "ok",
        "source": "rule:gsm8k",
    }
    assert cached.score is not None and (cached.score.cached, cached.score.value) == (True, scored.value)
    assert server.stats()["items"] == before


def test_no_key(server: FaultServer) -> None:
    """A sample that is not to be cached has no key, and the step says why."""
    found = explained(Request("gsm8k", "#### 42", "42", {"cache_enabled": False}))
    assert named(found.steps, "key") == [{"key": "none: caching is off for this sample"}]


def test_parts_of_a_composite(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part's steps stand within it, one part after the other, and then how they were combined."""
    monkeypatch.setattr(client, "_registered", {})
    register_route("both", {"sum": [{"route": "gsm8k", "weight": 0.5}, {"route": "exact_match", "weight": 0.5}]})
    request = Request("both", "#### 42", "42")
    found = explained(request)
    names = [step.name for step in found.steps]
    assert names == ["route", "request", "part gsm8k", "part exact_match", "combined", "score"]
    assert all("prepared" in [inner.name for inner in step.steps] for step in found.steps[2:4])
    [whole] = named(found.steps, "combined")
    assert found.score is not None and whole["parts"] == found.score.parts
    assert found.score.value == score([request])[0].value


def test_steps_on_the_wire() -> None:
    """Steps are read as they were written; what JSON does not have is text."""
    step = Step("one", {"low": float("-inf"), "names": ("a",)}, 1.5, [Step("two", {})])
    [read] = read_steps([json.loads(json.dumps(step.record(), allow_nan=False))])
    assert (read.facts, read.steps[0].name, read.latency_ms) == ({"low": "-inf", "names": ["a"]}, "two", 1.5)


@pytest.mark.parametrize(
    "steps", [None, [1], [{"step": "x"}], [{"step": "x", "facts": [1], "latency_ms": 1, "steps": []}]]
)
def test_steps_that_are_none(steps: Any) -> None:
    """What a server sends is read with distrust."""
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_steps(steps)
