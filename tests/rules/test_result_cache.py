"""The result cache beside a reward server: what is kept there, what is not worth it, and what a new server finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

from tests.rules.conftest import RewardServer, running
from tests.rules.test_operations import metric
from tests.support.servers import FaultServer, Redis
from tests.support.waiting import eventually

CLIENT_TESTS = Path(__file__).parents[1] / "client"
VALUES = ("get", "mget", "set", "setex", "mset")
"""Redis' commands that read or write values."""


def item(source: str, response: str, reference: str, **extra: Any) -> dict[str, Any]:
    """One sample."""
    return {"data_source": source, "solution_str": response, "ground_truth": reference, "extra_info": extra}


CHEAP = [
    item("gsm8k", "#### 5", "5"),
    item("math", "\\boxed{5}", "5.0"),
    item("math", "\\boxed{6}", "5"),
    item("math_verifier", "<think>a</think><answer>7</answer>", "7"),
    item("rule_remote_exact_match", "a", "a"),
    item("rule_remote_multiple_choice", "The answer is (B).", "B"),
    item("rule_remote_length", "some words", "", max_length=100),
]
DEAR = [
    item("math", "$\\sqrt{8}$", "2\\sqrt{2}"),
    item("math", "So it is $\\sqrt{8}$", "2\\sqrt{2}"),
    item("rule_remote_regex_format", "abc", "", pattern="[a-c]+"),
    item("llm_judge_remote", "It is 42.", "42", problem="What is 6 times 7?", temperature=0),
    item("embedding_remote", "a text", "another text"),
]


@pytest.fixture
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


def commands(redis: Redis) -> set[str]:
    """The commands for values that Redis was sent so far."""
    stats = redis_client.Redis.from_url(redis.url).info("commandstats")
    return {name for name in VALUES if f"cmdstat_{name}" in stats}


def statuses(server: RewardServer, *items: dict[str, Any]) -> set[tuple[str, bool]]:
    """The different statuses, and whether they came from a cache."""
    return {(one["status"], one["cached"]) for one in server.score(*items)}


def test_cheap_samples_never_touch_redis(tmp_path: Path, redis: Redis, variables: dict[str, str]) -> None:
    """What a server decides by itself is neither looked up in Redis nor written there; the process remembers it."""
    with running(tmp_path, "--workers", "1", **variables) as server:
        assert {("ok", False)} == statuses(server, *CHEAP)
        assert {("ok", True)} == statuses(server, *CHEAP)

    assert set() == commands(redis)
    assert 0 == redis_client.Redis.from_url(redis.url).dbsize()


def test_a_new_server_finds_the_rest(tmp_path: Path, redis: Redis, variables: dict[str, str]) -> None:
    """What took algebra, a process of its own, a judge or an embedding is found by a server that comes after.

    The first stops as soon as it has answered: what was on its way is written before it ends.
    """
    with running(tmp_path, "--workers", "1", **variables) as server:
        assert {("ok", False)} == statuses(server, *DEAR)
    with running(tmp_path, "--workers", "1", **variables) as server:
        assert {("ok", True)} == statuses(server, *DEAR)

    assert {"mget", "set"} == commands(redis)


def test_what_is_not_written_is_counted(tmp_path: Path, redis: Redis, variables: dict[str, str]) -> None:
    """Where Redis is full every sample has its score, and the values that it did not take are counted."""
    connection = redis_client.Redis.from_url(redis.url)
    connection.config_set("maxmemory-policy", "noeviction")
    connection.config_set("maxmemory", "1kb")
    with running(tmp_path, "--workers", "1", **variables) as server:
        assert {("ok", False)} == statuses(server, DEAR[0])
        eventually(lambda: metric(server.get("/metrics").text, "rewardstack_cache_unwritten_total") == 1)
