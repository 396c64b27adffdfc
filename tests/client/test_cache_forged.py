"""Values in Redis that cannot be what belongs under their keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis as redis_client

from rewardstack.cache.signature import Signer
from rewardstack.cache.store import ResultCache
from rewardstack.cache.value import MAX_BYTES
from rewardstack.score import Score
from rewardstack.settings import Settings
from tests.support.servers import Redis


async def test_never_in_memory(redis: Redis) -> None:
    """What Redis has and cannot be believed is not kept in the process, where others would take it meanwhile."""
    settings = Settings.from_env({"REWARD_CACHE_URL": redis.url})
    writer, reader = ResultCache(settings), ResultCache(settings)
    writer.put([("high", Score(9.0, source="one")), ("low", Score(0.5, source="one"))])
    await writer.flush()

    found = await reader.read_redis(["high", "low"], lambda _, score: score.value == 0.5)

    assert {"low": 0.5} == {key: one.value for key, one in found.items()}
    assert [None, 0.5] == [one and one.value for one in reader.get_from_memory(["high", "low"])]
    for cache in (writer, reader):
        await cache.close()


@pytest.mark.parametrize("secret", ["", "secret"])
async def test_too_large(redis: Redis, secret: str) -> None:
    """Of a value that is too large Redis sends no more than a value may have, and its neighbors are read."""
    settings = Settings.from_env({"REWARD_CACHE_URL": redis.url, "REWARD_CACHE_SECRET": secret})
    refused: list[int] = []
    writer, reader = ResultCache(settings), ResultCache(settings, on_invalid=refused.append)
    writer.put([(key, Score(0.5, source="one")) for key in ("small", "reason", "parts", "list")])
    await writer.flush()
    connection: Any = redis_client.Redis.from_url(redis.url)
    many = json.dumps(["parts", 0.5, "one", "", None, {str(at): 1.0 for at in range(50_000)}]).encode()
    signer = Signer(secret)
    forged = {"reason": json.dumps(["reason", 0.5, "one", "a" * 2_000_000]).encode(), "parts": many}
    for key, value in forged.items():
        connection.set(key, signer.sign(key, value) if secret else value)
    connection.delete("list")
    connection.rpush("list", "a")
    before = connection.info("stats")["total_net_output_bytes"]

    found = await reader.read_redis(["small", "reason", "parts", "list", "none"])

    assert ["small"] == [*found]
    assert [2] == refused
    assert connection.info("stats")["total_net_output_bytes"] - before < 4 * MAX_BYTES
    for cache in (writer, reader):
        await cache.close()


async def test_too_large_to_write(redis: Redis) -> None:
    """A score that no reader would take is not written, and is counted; its neighbors are written."""
    dropped: list[int] = []
    cache = ResultCache(Settings.from_env({"REWARD_CACHE_URL": redis.url}), on_dropped=dropped.append)
    cache.put([("large", Score(0.5, "ok", "a" * MAX_BYTES, "one")), ("small", Score(0.5, source="one"))])
    await cache.close()

    assert [b"small"] == redis_client.Redis.from_url(redis.url).keys()
    assert [1] == dropped
