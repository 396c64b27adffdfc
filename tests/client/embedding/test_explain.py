"""What an explanation tells of the embedding similarity."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis as redis_client

from rewardstack import Request, score
from rewardstack.score import Usage
from tests.support.explaining import explained, named
from tests.support.servers import FaultServer, Redis, free_port

SOURCE = "embedding_remote_test"
SAMPLES = [
    Request(SOURCE, "some text", "another text"),
    Request(SOURCE, "abc", ["xyz", "cab"], {"prompt_prefix": "query: "}),
    Request(SOURCE, "a b c d", ["a b c d a b c d a b c d", "z"], {"length_penalty": "ratio", "length_threshold": 2}),
    Request(SOURCE, "  ", "x"),
    Request(SOURCE, "x", None),
]


@pytest.mark.parametrize("request_", SAMPLES)
def test_the_same_as_scoring(server: FaultServer, request_: Request) -> None:
    """The score is the one that scoring gives."""
    found, [scored] = explained(request_), score([request_])
    assert found.score is not None
    assert (found.score.value, found.score.status, found.score.reason, found.score.parts) == (
        scored.value,
        scored.status,
        scored.reason,
        scored.parts,
    )


def test_comparisons(server: FaultServer) -> None:
    """Each reference has its cosine, its similarity and its penalty; the texts are those that were sent."""
    found = explained(SAMPLES[1])
    [compared] = named(found.steps, "vectors")
    facts: list[dict[str, Any]] = compared["compared"]
    assert [one["reference"] for one in facts] == ["xyz", "cab"]
    assert all(one["similarity"] == pytest.approx((one["cosine"] + 1) / 2) for one in facts)
    assert found.score is not None and max(one["similarity"] for one in facts) == found.score.value
    [prepared] = named(found.steps, "prepared")
    assert (prepared["candidate"], prepared["references"]) == ("query: abc", ["query: xyz", "query: cab"])
    assert prepared["options"]["prefix"] == {"value": "query: ", "from": "extra_info"}


def test_nothing_is_kept(server: FaultServer, redis: Redis) -> None:
    """The server is asked each time, which is told as its cost: no vector is kept."""
    found = [explained(SAMPLES[0]).score for _ in range(2)]
    assert [Usage(1, 0, 0, 1)] * 2 == [one and one.usage for one in found]
    assert not redis_client.Redis.from_url(redis.url).dbsize()


def test_a_wrong_option(server: FaultServer) -> None:
    """An option that cannot be used is named, and there is no score."""
    found = explained(Request(SOURCE, "x", "y", {"length_penalty": "none of these"}))
    assert "length_penalty: expected one of" in json.dumps(found.record())
    assert found.score is None or found.score.status == "unscored"


def test_a_substitute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server is away, what failed and what stands in for it are steps of their own."""
    monkeypatch.setenv("EMBEDDING_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("EMBEDDING_SERVER_TIMEOUT", "0.3")  # expires
    found = explained(SAMPLES[0])
    [substitute] = named(found.steps, "substitute")
    assert found.score is not None and found.score.status == "fallback"
    assert substitute["value"] == found.score.value
