"""Store the last hour of every replica in the Redis of the result cache.

Each replica has a Redis hash, a ring buffer with one snapshot for each of the last `KEPT_MINUTES` minutes. The hash
expires two hours after the last write. A replica that shuts down cleanly sets a mark in its hash, so that it is not
reported as down. Data from Redis is untrusted, so it is validated when it is read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rewardstack_rules.status.series import KEPT_MINUTES
from rewardstack_rules.status.snapshot import Snapshot, pack, unpack

PREFIX = "rewardstack:status"
REPLICAS = f"{PREFIX}:replicas"
"""A sorted set of replicas, by the time of their last write."""
LIFE = 7200
"""Seconds without a write after which a replica's data expires."""
WAIT = 1.0
"""Timeout of a command, in seconds."""
MAX_REPLICAS = 64
"""Maximum number of replicas that are read."""
MAX_NAME_LENGTH = 200
LEFT = "left"
"""The field of the hash that marks a clean shutdown."""


class ReplicaData(NamedTuple):
    """The data that a replica has written.

    Args:
        snapshots: pairs of a minute and its snapshot.
        has_left: whether the replica has shut down cleanly.
    """

    snapshots: list[tuple[int, Snapshot]]
    has_left: bool


class SnapshotStore:
    """Shares snapshots among replicas. Methods raise `redis.RedisError` or `OSError` if Redis does not answer.

    Args:
        url: URL of the Redis.
        name: unique name of this replica (`recorder.Replica.id`).
    """

    def __init__(self, url: str, name: str) -> None:
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=WAIT, socket_connect_timeout=WAIT, retry=Retry(NoBackoff(), 0)
        )
        self._name = name

    def write(self, minute: int, snapshot: Snapshot) -> None:
        """Store this replica's snapshot of a minute."""
        now = time.time()
        pipe = self._redis.pipeline(transaction=False)
        pipe.hset(self._key(self._name), str(minute % KEPT_MINUTES), pack(minute, snapshot))
        pipe.expire(self._key(self._name), LIFE)
        pipe.zadd(REPLICAS, {self._name: now})
        pipe.zremrangebyscore(REPLICAS, 0, now - LIFE)
        pipe.expire(REPLICAS, LIFE)
        pipe.execute()

    def replicas(self) -> dict[str, float]:
        """Return the time of the last write of each replica, in seconds since 1970, by the replica's name."""
        found = self._redis.zrevrange(REPLICAS, 0, MAX_REPLICAS - 1, withscores=True)
        now = time.time()  # limits the times, because Redis is untrusted, and JSON cannot hold an infinite number
        return {name.decode("utf-8", "replace")[:MAX_NAME_LENGTH]: min(max(0.0, score), now) for name, score in found}

    def leave(self) -> None:
        """Mark this replica as shut down cleanly, if it has written anything."""
        if self._redis.expire(self._key(self._name), LIFE):
            self._redis.hset(self._key(self._name), LEFT, "1")

    def read(self, since: Mapping[str, int], now: int) -> dict[str, ReplicaData]:
        """Return the data of replicas, by name, in one round trip.

        Args:
            since: the first minute to read, by the replica's name.
            now: the last minute to read.
        """
        pipe = self._redis.pipeline(transaction=False)
        for name, first in since.items():
            minutes = range(max(first, now - KEPT_MINUTES + 1), now + 1)
            pipe.hmget(self._key(name), [LEFT, *(str(minute % KEPT_MINUTES) for minute in minutes)])
        return {name: _replica_data(*row, now=now) for name, row in zip(since, pipe.execute(), strict=True)}

    @staticmethod
    def _key(name: str) -> str:
        return f"{PREFIX}:of:{name}"


def _replica_data(left: bytes | None, *rows: bytes | None, now: int) -> ReplicaData:
    snapshots = [row for row in map(unpack, rows) if row is not None and now - KEPT_MINUTES < row[0] <= now + 1]
    return ReplicaData(snapshots, left is not None)
