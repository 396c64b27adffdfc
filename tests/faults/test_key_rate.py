"""A client that asks without end: its key has so many requests a second, at all processes together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from rewardstack import Request, score
from tests.jobs.conftest import KEY, KEYS, OTHER_KEY
from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer, running
from tests.support.servers import Redis

RATE = 3
REQUESTS = 60
ITEM = {"data_source": "gsm8k", "solution_str": "#### 5", "ground_truth": "5"}
Reply = TypeVar("Reply")


@pytest.fixture(scope="module")
def cache(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """A Redis that is reached by its socket, as `make up` has it."""
    folder = tmp_path_factory.mktemp("cache")
    redis = Redis(folder, "--unixsocket", str(folder / "cache.sock"))
    redis.url = f"unix://{folder}/cache.sock"
    yield redis
    redis.kill()


@pytest.fixture(scope="module")
def rated(cache: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server of two processes with two keys."""
    variables = {"REWARD_SERVER_API_KEYS": KEYS, "REWARD_CACHE_URL": cache.url}
    folder = tmp_path_factory.mktemp("rated")
    with running(folder, "--workers", "2", REWARD_KEY_RATE=RATE, **variables) as server:
        yield server


def storm(ask: Callable[[int], Reply]) -> tuple[list[Reply], float]:
    """The answers to many requests at once, and the seconds that they took."""
    started = time.monotonic()
    with ThreadPoolExecutor(12) as threads:
        return list(threads.map(ask, range(REQUESTS))), time.monotonic() - started


def test_a_key_has_its_rate(rated: RewardServer) -> None:
    """What is too much is refused before it is read, says so and when to come back; the other key is not concerned."""
    replies, seconds = storm(lambda _: rated.post("/v1/score", {"items": [ITEM]}, headers=KEY))

    refused = [reply for reply in replies if reply.status_code == 429]
    # Where Redis itself is kept from its work for a second, each of the two processes counts for itself.
    counters = 1 + ("cannot count requests" in rated.log.read_text())
    assert 0 < REQUESTS - len(refused) <= counters * RATE * (seconds + 2), seconds
    assert {reply.status_code for reply in replies} == {200, 429}
    assert refused[0].json()["field"] == "REWARD_KEY_RATE"
    assert {reply.headers["Retry-After"] for reply in refused} == {"1"}
    assert rated.score(ITEM, headers=OTHER_KEY)[0]["status"] == "ok"


def test_probes_are_free(rated: RewardServer) -> None:
    """Requests for health and metrics are always answered, and count against no key's limit."""
    replies, _ = storm(lambda at: rated.get(("/health", "/ready", "/metrics")[at % 3], headers=KEY))

    assert {reply.status_code for reply in replies} == {200}


def test_a_trainer_waits(rated: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trainer that sends more than its rate has every sample scored in the end."""
    monkeypatch.setenv("REWARD_SERVER_URL", rated.url)
    monkeypatch.setenv("REWARD_SERVER_API_KEY", "second-key-of-tests")

    for at in range(3 * RATE):
        assert ["ok"] == [one.status for one in score([Request("rule_remote_gsm8k", f"#### {at}, waiting", "5")])]


def test_no_limit_unless_set(server: RewardServer) -> None:
    """Where the setting is empty nothing is refused."""
    replies, _ = storm(lambda _: server.post("/v1/score", {"items": [ITEM]}))

    assert {reply.status_code for reply in replies} == {200}


@pytest.mark.usefixtures("needs_nginx")
def test_behind_a_gateway(rated: RewardServer, tmp_path: Path) -> None:
    """What the gateway asks of a key costs it nothing, and the refusals of the server reach its clients as they are."""
    gateway = Gateway(tmp_path, {"rules": [rated.url.removeprefix("http://")]}, load(REWARD_SERVER_API_KEYS=KEYS))
    try:
        body, headers = json.dumps({"items": [ITEM]}).encode(), {**KEY, "Content-Type": "application/json"}
        replies, _ = storm(lambda _: gateway.ask("/v1/score", body, headers=headers))
    finally:
        gateway.stop()

    assert {status for status, _ in replies} == {200, 429}
    assert all("REWARD_KEY_RATE" in text for status, text in replies if status == 429)


def test_without_the_cache(cache: Redis, rated: RewardServer) -> None:
    """Where the Redis that counts hangs, requests are answered, and each of the two processes counts for itself."""
    cache.freeze()
    try:
        assert rated.score(ITEM, headers=OTHER_KEY)[0]["status"] == "ok"
        replies, seconds = storm(lambda _: rated.post("/v1/score", {"items": [ITEM]}, headers=KEY))
    finally:
        cache.thaw()

    assert {reply.status_code for reply in replies} == {200, 429}
    assert sum(reply.status_code == 200 for reply in replies) <= 2 * RATE * (seconds + 2)
    assert "cannot count requests" in rated.log.read_text()


@pytest.mark.nightly
@pytest.mark.usefixtures("needs_nginx")
def test_own_refusals_leave_no_server_out(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However often both servers refuse what one client asks, by its deadline or its rate, others are answered."""
    folders = [tmp_path_factory.mktemp("one_of_two") for _ in range(2)]
    settings = {"REWARD_SERVER_API_KEYS": KEYS, "REWARD_KEY_RATE": RATE}
    with (
        running(folders[0], "--workers", "1", **settings) as first,
        running(folders[1], "--workers", "1", **settings) as second,
    ):
        servers = [one.url.removeprefix("http://") for one in (first, second)]
        gateway = Gateway(tmp_path, {"rules": servers}, load(REWARD_SERVER_API_KEYS=KEYS))
        try:
            batch = {"prompts": ["p"], "responses": ["r"], "golden_responses": ["g"]}
            greedy = {**KEY, "Content-Type": "application/json", "X-Request-Deadline-Ms": "0"}
            path = "/get_reward?reward_type=exact_match"
            refused, _ = storm(lambda _: gateway.ask(path, json.dumps(batch).encode(), headers=greedy))
            body = json.dumps({"items": [ITEM]}).encode()
            other = {**OTHER_KEY, "Content-Type": "application/json"}
            answered = [gateway.ask("/v1/score", body, headers=other) for _ in range(RATE)]
        finally:
            gateway.stop()
    assert {status for status, _ in refused} <= {429, 503}
    assert {status for status, _ in answered} == {200}
