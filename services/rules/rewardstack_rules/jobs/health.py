"""Whether the queue has heard of a worker lately."""

from __future__ import annotations

from collections.abc import Collection

from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from rewardstack_rules.jobs.link import RedisClient, reaching


def problem(redis: RedisClient, host: str, pids: Collection[int] | None = None) -> str:
    """What is wrong with a worker; empty where the queue has heard of it within the last `SILENCE` seconds.

    Args:
        redis: of the queue.
        host: that it runs on, as that knows itself.
        pids: process ids, of which its own is one; None for any worker of that host.

    Raises:
        ServiceError: the queue does not answer.
    """
    with reaching():
        seconds, _ = redis.time()
        heard = [name.decode() for name in redis.zrangebyscore(WORKERS, seconds - SILENCE, "+inf")]
    known = [name for name in heard if name.rpartition("-")[0] == host]
    if known if pids is None else any(f"{host}-{pid}" in known for pid in pids):
        return ""
    return "the queue has not heard of this worker"
