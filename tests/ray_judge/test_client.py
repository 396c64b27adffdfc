"""The client's way to a judge that is a Ray actor, without Ray: what it sends, and what errors become."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import types
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from itertools import count
from typing import Any

import pytest

import rewardstack
from rewardstack.errors import SettingsError
from rewardstack.settings import Settings
from rewardstack.transport import ray_actor, timing
from tests.ray_judge.cluster import samples, statuses
from tests.support.clock import Clock
from tests.support.waiting import eventually

NAMES = (f"judge-{number}" for number in count())
"""A name for each test: of an address what was refused is remembered."""
MODELS = {"data": [{"id": "fake", "root": "/models/fake", "owned_by": "vllm"}]}
Response = tuple[int, dict[str, Any]]


class RayError(Exception):
    """As `ray.exceptions.RayError`."""


class RayTaskError(RayError):
    """As Ray's."""


class Actor:
    """A handle whose calls are answered here; each is noted.

    Args:
        chat: answers chats.
    """

    def __init__(self, chat: Callable[[dict[str, Any]], Response]) -> None:
        self.calls: list[tuple[str, str]] = []
        self.request = types.SimpleNamespace(remote=self._request)
        self._chat = chat

    def _request(self, method: str, path: str, body: bytes, seconds: float) -> Awaitable[tuple[int, bytes]]:
        self.calls.append((method, path))
        assert seconds > 0

        async def answer() -> tuple[int, bytes]:
            known: dict[str, Callable[[], Response]] = {
                "/v1/models": lambda: (200, MODELS),
                "/version": lambda: (200, {"version": "0.32.0"}),
                "/v1/chat/completions": lambda: self._chat(json.loads(body)),
                "/health": lambda: (200, {}),
            }
            status, reply = known[path]()
            return status, json.dumps(reply).encode()

        return asyncio.ensure_future(answer())


def verdict(body: dict[str, Any]) -> Response:
    """A reply with a verdict."""
    assert body["model"] == "fake"
    return 200, {"choices": [{"message": {"content": "REWARD: 0.75"}, "finish_reason": "stop"}], "usage": {}}


@pytest.fixture(autouse=True)
def fake_ray(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """A module `ray` as far as the transport asks it, and an environment that names the actor."""
    ray = types.ModuleType("ray")
    ray.__spec__ = ModuleSpec("ray", None)
    errors = types.SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
    vars(ray).update(exceptions=errors, cancel=lambda _: None)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setenv("LLM_JUDGE_RAY_ACTOR", next(NAMES))
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "30")
    monkeypatch.setenv("JUDGE_REVISION", request.node.name)
    yield
    ray_actor._handles.clear()


def actor(chat: Callable[[dict[str, Any]], Response]) -> Actor:
    """The actor that the environment names."""
    [address] = Settings.from_env().judge_urls
    made = ray_actor._handles[address] = Actor(chat)
    return made


def test_scores() -> None:
    """The actor is asked what a server would be, by the same paths, and a second time the cache answers."""
    asked = actor(verdict)
    scores = rewardstack.score(samples(4))
    assert [(one.status, one.value) for one in scores] == [("ok", 0.75)] * 4
    assert set(asked.calls) == {("GET", "/v1/models"), ("GET", "/version"), ("POST", "/v1/chat/completions")}
    assert all(one.cached for one in rewardstack.score(samples(4)))


def lost(_: dict[str, Any]) -> Response:
    raise RayError("the actor is unavailable")


def broken(_: dict[str, Any]) -> Response:
    raise RayTaskError("Traceback ...\nValueError: a fault of the actor's own")


@pytest.mark.parametrize(
    ("chat", "says"),
    [
        (lambda _: (400, {"error": {"message": "the prompt is malformed"}}), "the prompt is malformed"),
        (lambda _: (500, {"error": {"message": "out of memory"}}), "out of memory"),
        (lambda _: (200, {"choices": []}), "judge"),
        (broken, "a fault of the actor's own"),
    ],
    ids=["refused", "error", "no reply", "exception"],
)
def test_failures(chat: Callable[[dict[str, Any]], Response], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no answer fails every sample with its reason; none is a score."""
    monkeypatch.setattr(timing, "RETRY_PAUSE", 0.01)
    monkeypatch.setenv("REWARDSTACK_MAX_RETRIES", "1")
    actor(chat)
    scores = rewardstack.score(samples(3))
    assert statuses(scores) == {"failed": 3}
    assert all(says in one.reason for one in scores), scores[0].reason


@pytest.mark.parametrize(
    ("status", "says"), [(503, "no engine is up; engine 1: it restarts"), (429, "2048 requests are in flight")]
)
def test_busy(monkeypatch: pytest.MonkeyPatch, status: int, says: str) -> None:
    """What does not end in the time of a sample fails it with its reason."""
    clock = Clock(monkeypatch)
    asked = actor(lambda _: (status, {"error": {"message": says}}))
    with ThreadPoolExecutor(1) as thread:
        scoring = thread.submit(rewardstack.score, samples(3))
        eventually(lambda: len([one for one in asked.calls if one[0] == "POST"]) > 3)
        for _ in range(3):  # the time of a sample in a queue begins with the last answer
            clock.forward(31)
        scores = scoring.result()
    assert statuses(scores) == {"failed": 3}
    assert all(says in one.reason for one in scores), scores[0].reason


def test_lost_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the actor is lost, its name is looked up again, once for all samples, and the actor found is asked."""
    found, looked_up, clock = Actor(verdict), [], Clock(monkeypatch)

    def find(_url: str, _namespace: str, name: str) -> Actor:
        looked_up.append(name)
        for _ in range(10):
            clock.forward(0)  # until all samples have found the actor lost
        return found

    monkeypatch.setattr(ray_actor, "_find", find)
    actor(lost)
    assert statuses(rewardstack.score(samples(50))) == {"ok": 50}
    assert ("POST", "/v1/chat/completions") in found.calls
    assert looked_up.count(os.environ["LLM_JUDGE_RAY_ACTOR"]) == 1  # judges of earlier tests are still probed


def test_no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray the error names the variable, and what to install."""
    monkeypatch.setattr(ray_actor, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"LLM_JUDGE_RAY_ACTOR needs Ray.*pip install ray,"):
        rewardstack.score(samples(1))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("judge", "ray://rewardstack/judge"),
        ("rewardstack/judge", "ray://rewardstack/judge"),
        ("my-run.2/the_judge", "ray://my-run.2/the_judge"),
    ],
)
def test_address(text: str, address: str) -> None:
    """An actor is named with its namespace or without."""
    assert Settings.from_env({"LLM_JUDGE_RAY_ACTOR": text}).judge_urls == (address,)


@pytest.mark.parametrize("other", ["LLM_JUDGE_SERVER_URL", "REWARDSTACK_ENDPOINTS"])
def test_two_judges(other: str) -> None:
    """Two variables that each name the judge are an error that names both."""
    with pytest.raises(SettingsError) as raised:
        Settings.from_env({"LLM_JUDGE_RAY_ACTOR": "judge", other: "http://a:8000"})
    assert other in str(raised.value) and "LLM_JUDGE_RAY_ACTOR" in str(raised.value)


def test_samples_name_no_actor() -> None:
    """A sample's own `server_url` reaches no actor, so that untrusted rows call nothing in the cluster."""
    asked = actor(verdict)
    [request] = samples(1)
    other = rewardstack.Request(
        request.data_source, "a", "b", {**(request.extra_info or {}), "server_url": "ray://rewardstack/judge"}
    )
    scores = rewardstack.score([other, request])
    assert [one.status for one in scores] == ["unscored", "ok"]
    assert len([one for one in asked.calls if one[0] == "POST"]) == 1
