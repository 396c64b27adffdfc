"""The result cache beside a reward server: what is kept there, what is not worth it, what a new server finds.

It can be off: by a setting of client or server, or by a sample's own option. The server remembers scores itself, so
each test has samples of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

from rewardstack import Request, score
from rewardstack.cache.key import PREFIX
from rewardstack.settings import DEFAULTS
from tests.rules.conftest import HERE, RewardServer, running
from tests.rules.test_operations import metric
from tests.support.servers import FaultServer, Redis
from tests.support.waiting import eventually

CLIENT_TESTS = Path(__file__).parents[1] / "client"
PATIENT = {"REWARD_FUNCTIONS": HERE / "functions" / "patient_redis.py"}
VALUES = ("get", "mget", "getrange", "set", "setex", "mset")
"""Redis' commands that read or write values."""


def item(source: str, response: str, reference: str, **extra: Any) -> dict[str, Any]:
    """One sample."""
    return {"data_source": source, "solution_str": response, "ground_truth": reference, "extra_info": extra}


def cheap(n: int) -> list[dict[str, Any]]:
    """Return samples that a server decides by itself; other ones for each number."""
    return [
        item("gsm8k", f"#### {n}", f"{n}"),
        item("math", f"\\boxed{{{n}}}", f"{n}.0"),
        item("math", f"\\boxed{{{n + 1}}}", f"{n}"),
        item("math_verifier", f"<think>a</think><answer>{n}</answer>", f"{n}"),
        item("rule_remote_exact_match", f"a {n}", f"a {n}"),
        item("rule_remote_multiple_choice", f"By {n} the answer is (B).", "B"),
        item("rule_remote_length", f"some words, {n}", "", max_length=100),
    ]


def expensive(n: int) -> list[dict[str, Any]]:
    """Return samples that take algebra, a process of its own, a judge or an embedding; other ones for each number."""
    return [
        item("math", f"${n}\\sqrt{{8}}$", f"{2 * n}\\sqrt{{2}}"),
        item("math", f"So it is ${n}\\sqrt{{8}}$", f"{2 * n}\\sqrt{{2}}"),
        item("rule_remote_regex_format", "abc" * n, "", pattern="[a-c]+"),
        item("llm_judge_remote", f"It is {n}.", "42", problem="What is 6 times 7?", temperature=0),
        item("embedding_remote", f"a text, {n}", "another text"),
    ]


@pytest.fixture(scope="module")
def redis(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """The Redis of the cache."""
    one = Redis(tmp_path_factory.mktemp("redis"))
    yield one
    one.kill()


@pytest.fixture(scope="module")
def variables(redis: Redis) -> Iterator[dict[str, str]]:
    """The environment of a server that has a result cache, a judge and an embedding server."""
    with ExitStack() as stack:
        judge = FaultServer(script=CLIENT_TESTS / "judge" / "fake_judge.py")
        stack.callback(judge.kill)
        embedding = FaultServer(script=CLIENT_TESTS / "embedding" / "stand_in.py")
        stack.callback(embedding.kill)
        yield {
            "REWARD_CACHE_URL": redis.url,
            "LLM_JUDGE_SERVER_URL": judge.url,
            "EMBEDDING_SERVER_URL": embedding.url,
        }


@pytest.fixture(scope="module")
def server(variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with that environment."""
    with running(tmp_path_factory.mktemp("server"), "--workers", "1", **PATIENT, **variables) as one:
        yield one


@pytest.fixture
def client(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose REWARD_SERVER_URL points to the server."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)


def commands(redis: Redis) -> dict[str, int]:
    """Return how often Redis was sent each command for values so far."""
    stats = redis_client.Redis.from_url(redis.url).info("commandstats")
    return {name: stats[f"cmdstat_{name}"]["calls"] for name in VALUES if f"cmdstat_{name}" in stats}


def keys(redis: Redis) -> int:
    """Return how many scores Redis has; the status page keeps counts in the same Redis."""
    return len(list(redis_client.Redis.from_url(redis.url).scan_iter(f"{PREFIX}*")))


def statuses(server: RewardServer, *items: dict[str, Any]) -> set[tuple[str, bool]]:
    """The different statuses, and whether they came from a cache."""
    return {(one["status"], one["cached"]) for one in server.score(*items)}


def client_statuses(samples: list[dict[str, Any]]) -> set[tuple[str, bool]]:
    """What a client of this process says of samples."""
    return {(one.status, one.cached) for one in score([Request(**one) for one in samples])}


def test_cheap_samples_never_touch_redis(server: RewardServer, redis: Redis) -> None:
    """What a server decides by itself is neither looked up in Redis nor written there; the process remembers it."""
    before = commands(redis), keys(redis)
    assert {("ok", False)} == statuses(server, *cheap(1))
    assert {("ok", True)} == statuses(server, *cheap(1))

    assert before == (commands(redis), keys(redis))


@pytest.mark.nightly
def test_another_server_finds_the_rest(
    tmp_path: Path, server: RewardServer, redis: Redis, variables: dict[str, str]
) -> None:
    """What took algebra, a process of its own, a judge or an embedding is found by a server that did not score it.

    The first stops as soon as it has answered: pending writes are done before it ends.
    """
    before = commands(redis)
    with running(tmp_path, "--workers", "1", **PATIENT, **variables) as first:
        assert {("ok", False)} == statuses(first, *expensive(2))
    assert {("ok", True)} == statuses(server, *expensive(2))

    assert {"getrange", "set"} == {name for name, calls in commands(redis).items() if calls > before.get(name, 0)}


def test_what_is_not_written_is_counted(server: RewardServer, redis: Redis) -> None:
    """Where Redis is full every sample has its score, and the values that it did not take are counted."""
    unwritten = "rewardstack_cache_write_errors_total"
    before = metric(server.get("/metrics").text, unwritten)
    connection = redis_client.Redis.from_url(redis.url)
    connection.config_set("maxmemory-policy", "noeviction")
    connection.config_set("maxmemory", "1kb")
    try:
        assert {("ok", False)} == statuses(server, expensive(3)[0])
        eventually(lambda: metric(server.get("/metrics").text, unwritten) == before + 1)
    finally:
        connection.config_set("maxmemory", "0")


def test_a_server_without_its_cache(tmp_path: Path, redis: Redis, variables: dict[str, str]) -> None:
    """With `REWARD_CACHE=off` a server scores the same samples again each time, and leaves Redis alone."""
    before = commands(redis), keys(redis)
    with running(tmp_path, "--workers", "1", REWARD_CACHE="off", **variables) as server:
        for _ in range(2):
            assert {("ok", False)} == statuses(server, *cheap(4), *expensive(4))
    assert before == (commands(redis), keys(redis))


def test_samples_without_it(client: None, server: RewardServer) -> None:
    """`cache_enabled: false` is a sample's own option for whatever scores it, asked for directly or by a client."""
    samples = [*cheap(5), *expensive(5)]
    uncached = [{**one, "extra_info": {**one["extra_info"], "cache_enabled": False}} for one in samples]
    assert {("ok", False)} == statuses(server, *samples)
    for _ in range(2):
        assert {("ok", False)} == statuses(server, *uncached)
        assert {("ok", False)} == client_statuses(uncached)
    assert {("ok", True)} == statuses(server, *samples)


def test_a_client_without_it(client: None, server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with `REWARD_CACHE=off` has scores computed again by a server whose own cache is on."""
    samples = [*cheap(6), *expensive(6)]
    assert {("ok", False)} == statuses(server, *samples)
    assert {("ok", True)} == statuses(server, *samples)
    monkeypatch.setenv("REWARD_CACHE", "off")
    for _ in range(2):
        assert {("ok", False)} == client_statuses(samples)
    monkeypatch.setenv("REWARD_CACHE", "on")
    assert {("ok", True)} == client_statuses(samples)


def test_a_client_that_asks_directly(variables: dict[str, str], redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `REWARD_CACHE=off` a client asks judge and embedding server each time, and leaves Redis alone."""
    for name, value in {**variables, "REWARD_CACHE": "off"}.items():
        monkeypatch.setenv(name, value)
    before = commands(redis)
    asked = [one for one in expensive(7) if one["data_source"] in ("llm_judge_remote", "embedding_remote")]
    assert len(asked) == 2
    for _ in range(2):
        assert {("ok", False)} == client_statuses(asked)
    assert before == commands(redis)
