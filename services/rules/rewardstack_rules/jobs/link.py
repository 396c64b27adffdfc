"""The connection to the queue's Redis: what can go wrong with it, in the words of rewardstack's errors."""

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
"""A `redis.Redis` that answers in bytes, which the types of redis-py cannot say."""

TIMEOUT = 10.0
"""Seconds that one attempt of a command may take."""
FULL = "the queue is full: wait for jobs to end and expire, cancel some, or raise QUEUE_MAX_MEMORY (its maxmemory)"
AWAY = "; see its log, and whether its disk is full"
"""What helps where nothing answers: a Redis that cannot write ends."""
PAUSE = 1.0
"""Most seconds between two attempts."""


def connect(url: str, retries: int = 2, timeout: float = TIMEOUT) -> RedisClient:
    """A client for any thread; it connects when it is used.

    Args:
        url: of the queue's Redis.
        retries: further attempts of a command that found no Redis, or lost it; they are `PAUSE` seconds apart.
            A command may then have been carried out twice: all that are sent can bear it.
        timeout: seconds that one attempt may take.
    """
    retry = Retry(ExponentialBackoff(cap=PAUSE, base=0.05), retries)
    return redis.Redis.from_url(url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry)


@contextmanager
def reaching() -> Iterator[None]:
    """Within it the queue's errors are those of a service.

    Raises:
        OverloadError: its memory is full.
        UnreachableError: it does not answer, or refuses.
    """
    try:
        yield
    except OutOfMemoryError as error:
        raise OverloadError(FULL) from error
    except RedisError as error:
        remedy = AWAY if isinstance(error, redis.ConnectionError) else ""
        raise UnreachableError(f"the queue (REWARD_QUEUE_URL): {_first_line(error)}{remedy}") from error


@contextmanager
def reading() -> Iterator[None]:
    """Within it sense is made of what the queue holds.

    Raises:
        UnreachableError: it holds what rewardstack did not write.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise UnreachableError("the queue (REWARD_QUEUE_URL) holds what rewardstack did not write") from error


def _first_line(error: Any) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
