"""Values in Redis that cannot be what belongs under their keys."""

from __future__ import annotations

from rewardstack.cache.store import ResultCache
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
    assert [None, 0.5] == [one and one.value for one in reader.recall(["high", "low"])]
    for cache in (writer, reader):
        await cache.close()
