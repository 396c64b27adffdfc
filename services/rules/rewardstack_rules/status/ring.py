"""The last hour of every replica, in the Redis of the result cache: a few snapshots a minute are written.

A replica has a hash of one snapshot a minute, in which a minute takes the place of the one an hour and some before it;
all of it is forgotten when nothing is written for two hours. What is read is believed as little as anything from
outside.
"""

from __future__ import annotations

import time
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rewardstack_rules.status.series import KEPT, Series
from rewardstack_rules.status.snapshot import Snapshot, pack, unpack

PREFIX = "rewardstack:status"
REPLICAS = f"{PREFIX}:replicas"
"""A sorted set: replicas by when they last wrote."""
LIFE = 7200
"""Seconds."""
WAIT = 1.0
"""Seconds that a command may take."""
MOST_REPLICAS = 64
"""That are read."""
LONGEST_NAME = 200


class Ring:
    """What replicas tell each other; methods raise `redis.RedisError` or `OSError` where Redis does not answer.

    Args:
        url: of the Redis.
        name: of this replica.
    """

    def __init__(self, url: str, name: str) -> None:
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=WAIT, socket_connect_timeout=WAIT, retry=Retry(NoBackoff(), 0)
        )
        self._name = name

    def write(self, minute: int, snapshot: Snapshot) -> None:
        """Keeps this replica's snapshot of a minute."""
        now = time.time()
        pipe = self._redis.pipeline(transaction=False)
        pipe.hset(self._key(self._name), str(minute % KEPT), pack(minute, snapshot))
        pipe.expire(self._key(self._name), LIFE)
        pipe.zadd(REPLICAS, {self._name: now})
        pipe.zremrangebyscore(REPLICAS, 0, now - LIFE)
        pipe.expire(REPLICAS, LIFE)
        pipe.execute()

    def replicas(self) -> dict[str, float]:
        """The replicas, and when each last wrote, in seconds since 1970."""
        found = self._redis.zrevrange(REPLICAS, 0, MOST_REPLICAS - 1, withscores=True)
        return {name.decode("utf-8", "replace")[:LONGEST_NAME]: score for name, score in found}

    def read(self, name: str, series: Series, since: int, now: int) -> None:
        """Adds to a replica's series what it has written.

        Args:
            name: of the replica.
            series: what is known of it.
            since: the first minute that is wanted.
            now: the last one.
        """
        fields = [str(minute % KEPT) for minute in range(max(since, now - KEPT + 1), now + 1)]
        for data in self._redis.hmget(self._key(name), fields) if fields else ():
            found = unpack(data)
            if found is not None and now - KEPT < found[0] <= now + 1:
                series.put(*found)

    @staticmethod
    def _key(name: str) -> str:
        return f"{PREFIX}:of:{name}"
