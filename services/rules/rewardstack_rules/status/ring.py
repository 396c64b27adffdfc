"""The last hour of every replica, in the Redis of the result cache: a few snapshots a minute are written.

A replica has a hash of one snapshot a minute, in which a minute takes the place of the one an hour and some before it;
all of it is forgotten when nothing is written for two hours. One that ends in order says so, and is not missed. What is
read is believed as little as anything from outside.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rewardstack_rules.status.series import KEPT
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
LEFT = "left"
"""A field beside the minutes, of a replica that has ended in order."""


class Written(NamedTuple):
    """What a replica has written.

    Args:
        snapshots: with the minute of each.
        left: whether it has said that it ends.
    """

    snapshots: list[tuple[int, Snapshot]]
    left: bool


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
        # Scores can be infinite, which JSON cannot hold.
        return {name.decode("utf-8", "replace")[:LONGEST_NAME]: max(0.0, score) for name, score in found}

    def leave(self) -> None:
        """Says that this replica ends in order, if it has written anything."""
        if self._redis.expire(self._key(self._name), LIFE):
            self._redis.hset(self._key(self._name), LEFT, "1")

    def read(self, since: Mapping[str, int], now: int) -> dict[str, Written]:
        """What replicas have written, all of it asked for at once.

        Args:
            since: the first minute that is wanted, by the replica's name.
            now: the last one.
        """
        pipe = self._redis.pipeline(transaction=False)
        for name, first in since.items():
            minutes = range(max(first, now - KEPT + 1), now + 1)
            pipe.hmget(self._key(name), [LEFT, *(str(minute % KEPT) for minute in minutes)])
        return {name: _written(*row, now=now) for name, row in zip(since, pipe.execute(), strict=True)}

    @staticmethod
    def _key(name: str) -> str:
        return f"{PREFIX}:of:{name}"


def _written(left: bytes | None, *minutes: bytes | None, now: int) -> Written:
    found = [one for one in map(unpack, minutes) if one is not None and now - KEPT < one[0] <= now + 1]
    return Written(found, left is not None)
