"""Checks whether a worker has reported to the queue recently."""

from __future__ import annotations

from collections.abc import Collection

from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from rewardstack_rules.jobs.link import RedisClient, reaching


def problem(redis: RedisClient, host: str, pids: Collection[int] | None = None) -> str:
    """Return the problem with a worker; empty if it has reported to the queue within the last `SILENCE` seconds.

    Args:
        redis: client of the queue's Redis.
        host: host name of the worker.
        pids: process ids, one of which is the worker's; None for any worker of that host.

    Raises:
        ServiceError: the queue does not answer.
    """
    with reaching():
        seconds, _ = redis.time()
        heard = [name.decode() for name in redis.zrangebyscore(WORKERS, seconds - SILENCE, "+inf")]
    known = [name for name in heard if name.rpartition("-")[0] == host]
    if known if pids is None else any(f"{host}-{pid}" in known for pid in pids):
        return ""
    return "the queue has no recent heartbeat of this worker"
