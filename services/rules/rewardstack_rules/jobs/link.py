"""Connect to the queue's Redis, and convert its errors to rewardstack's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import redis
from redis.backoff import ExponentialBackoff
from redis.exceptions import OutOfMemoryError, RedisError
from redis.retry import Retry

from rewardstack.errors import OverloadError, UnreachableError

RedisClient: TypeAlias = Any
"""A `redis.Redis` whose commands return bytes. redis-py's types cannot express this."""

TIMEOUT = 10.0
"""Timeout of one attempt to run a command, in seconds."""
FULL = "the queue is full: wait for jobs to end and expire, cancel some, or raise QUEUE_MAX_MEMORY (Redis' maxmemory)"
AWAY = "; see its log, and whether its disk is full"
"""Hint in the error if the queue does not answer. A Redis that cannot write to its disk may exit."""
PAUSE = 1.0
"""Maximum seconds between two attempts."""


def connect(url: str, retries: int = 2, timeout: float = TIMEOUT) -> RedisClient:
    """Return a thread-safe client, which connects with its first command.

    Args:
        url: URL of the queue's Redis.
        retries: number of retries of a command if the connection fails, up to `PAUSE` seconds apart. A command may
            then run several times, so all commands must be safe to repeat.
        timeout: timeout of one attempt, in seconds.
    """
    retry = Retry(ExponentialBackoff(cap=PAUSE, base=0.05), retries)
    return redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry)


@contextmanager
def redis_errors() -> Iterator[None]:
    """Convert Redis errors within the block to service errors.

    Raises:
        OverloadError: the memory of Redis is full.
        UnreachableError: Redis does not answer, or refuses a command.
    """
    try:
        yield
    except OutOfMemoryError as error:
        raise OverloadError(FULL) from error
    except RedisError as error:
        is_refused = isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError))
        remedy = AWAY if isinstance(error, redis.ConnectionError) and not is_refused else ""
        raise UnreachableError(f"the queue (REWARD_QUEUE_URL): {_first_line(error)}{remedy}") from error


@contextmanager
def parse_errors() -> Iterator[None]:
    """Convert errors that parsing the queue's data raises within the block.

    Raises:
        UnreachableError: the block raised an error of parsing, so rewardstack did not write the data.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise UnreachableError("the queue (REWARD_QUEUE_URL) has data that rewardstack did not write") from error


def _first_line(error: Any) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
