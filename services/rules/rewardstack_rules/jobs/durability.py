"""A job that was answered with 202 is on the queue's disk.

Redis 7.2 is asked to say so (WAITAOF). An older one has no such command: it must write before it answers
(`appendfsync always`). A Redis that keeps nothing, or that evicts, is no queue.
"""

from __future__ import annotations

from redis.exceptions import ResponseError

from rewardstack.errors import UnreachableError
from rewardstack_rules.jobs.keys import PREFIX
from rewardstack_rules.jobs.link import RedisClient

MARK = f"{PREFIX}:mark"
WAIT_MS = 5000
OPTIONS = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")


def confirm_written(redis: RedisClient) -> None:
    """Returns when all that was written so far is on the disk.

    Raises:
        UnreachableError: it is not, or cannot be; the message says which option of Redis is wrong.
        RedisError: the queue does not answer.
    """
    options = _options(redis)
    if options.get("appendonly", "yes") != "yes":
        raise UnreachableError(
            "the queue keeps nothing on disk, so no job is taken; start its Redis with appendonly yes"
        )
    if options.get("maxmemory", "0") != "0" and options.get("maxmemory-policy", "noeviction") != "noeviction":
        raise UnreachableError("the queue evicts, so no job is taken; start its Redis with maxmemory-policy noeviction")
    if options.get("appendfsync") == "always":
        return
    try:
        # Whatever connection it has: what is written now comes after all that was written before.
        pipeline = redis.pipeline(transaction=False).incr(MARK).execute_command("WAITAOF", 1, 0, WAIT_MS)
        [_, [local, _]] = pipeline.execute()
    except ResponseError as error:
        if "unknown command" not in str(error):
            raise
        raise UnreachableError(
            "the queue answers before it has written, so no job is taken; start its Redis with appendfsync always, "
            "or take Redis 7.2"
        ) from error
    if not local:
        raise UnreachableError(f"the queue did not write to its disk within {WAIT_MS / 1000:g} s")


def _options(redis: RedisClient) -> dict[str, str]:
    """Those of `OPTIONS` that the queue tells; a hosted one may tell none."""
    try:
        return {name: redis.config_get(name)[name] for name in OPTIONS}
    except ResponseError:
        return {}
