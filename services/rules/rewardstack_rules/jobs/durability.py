"""Ensure that a job is on the queue's disk before the server replies 202.

Redis 7.2 or later can confirm that data is on disk (WAITAOF). An older Redis must be set to write before it answers
(`appendfsync always`). A Redis without persistence, or with eviction, cannot be the queue.
"""

from __future__ import annotations

from redis.exceptions import ResponseError

from rewardstack.errors import UnreachableError
from rewardstack_rules.jobs.keys import PREFIX
from rewardstack_rules.jobs.link import RedisClient

MARK = f"{PREFIX}:mark"
"""Key of a counter whose value is never read. It is incremented so that WAITAOF has a write to wait for."""
WAIT_MS = 5000
"""Maximum milliseconds to wait until data is on disk."""
OPTIONS = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")


def confirm_written(redis: RedisClient) -> None:
    """Wait until all earlier writes are on the queue's disk.

    Raises:
        UnreachableError: the data was not on disk in time, or Redis is not configured to keep it. In the second case,
            the message names the option to change.
        RedisError: the queue does not answer.
    """
    options = _options(redis)
    if options.get("appendonly", "yes") != "yes":
        raise UnreachableError("the queue is not on disk, so no job is accepted; start its Redis with appendonly yes")
    if options.get("maxmemory", "0") != "0" and options.get("maxmemory-policy", "noeviction") != "noeviction":
        why = "the queue may evict jobs, so no job is accepted"
        raise UnreachableError(f"{why}; start its Redis with maxmemory-policy noeviction")
    if options.get("appendfsync") == "always":
        return
    try:
        # WAITAOF waits only for writes of its own connection, so make a write. Redis writes to its disk in order, so
        # all earlier writes are then on disk, too.
        pipeline = redis.pipeline(transaction=False).incr(MARK).execute_command("WAITAOF", 1, 0, WAIT_MS)
        [_, [local, _]] = pipeline.execute()
    except ResponseError as error:
        if "unknown command" not in str(error):
            raise
        raise UnreachableError(
            "the queue answers before data is on its disk, so no job is accepted; start its Redis with "
            "appendfsync always, or use Redis 7.2"
        ) from error
    if not local:
        raise UnreachableError(f"the queue did not write to its disk within {WAIT_MS / 1000:g} s")


def _options(redis: RedisClient) -> dict[str, str]:
    """Return the values of `OPTIONS`; empty if the Redis does not reveal them, e.g. because it is a hosted one."""
    try:
        return {name: redis.config_get(name)[name] for name in OPTIONS}
    except ResponseError:
        return {}
