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
NOT_THERE = "; start its Redis, or correct REWARD_QUEUE_URL; if it ended, see its log, and whether its disk is full"
"""Remedy in the error if no Redis listens at the queue's address, or if its host name is unknown."""
AWAY = "; see its log, and whether its disk is full"
"""Hint in the error if an established connection fails. A Redis that cannot write to its disk may exit."""
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
        raise UnreachableError(f"the queue (REWARD_QUEUE_URL): {first_line(error)}{_remedy(error)}") from error


@contextmanager
def parse_errors() -> Iterator[None]:
    """Convert errors that parsing the queue's data raises within the block.

    Raises:
        UnreachableError: the data could not be parsed, so rewardstack did not write it.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise UnreachableError("the queue (REWARD_QUEUE_URL) has data that rewardstack did not write") from error


def first_line(error: Any) -> str:
    """Return the first line of an error's message, without a final period; the error's type if the line is empty."""
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def _remedy(error: RedisError) -> str:
    is_refused = isinstance(error, (redis.AuthenticationError, redis.exceptions.AuthorizationError))
    if is_refused or not isinstance(error, redis.ConnectionError):
        return ""
    return NOT_THERE if " connecting to " in str(error) else AWAY  # redis-py's words for a failed connection attempt
