"""The connection to Redis, which is optional.

An error of Redis never fails a score. Each access takes at most `WAIT` seconds. After an error, the same kind of access
(`Use`) is skipped for `REST` seconds, so a hanging server costs one wait, not one per sample.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from rewardstack.core.event_loop import within
from rewardstack.errors import SettingsError

WAIT = 1.0
"""Timeout of one read or write of a group of values, in seconds."""
REST = 10.0
"""Seconds for which an access is skipped after one of its kind failed."""
CONNECTIONS = 8
"""Maximum number of connections in the pool."""

log = logging.getLogger(__name__)
T = TypeVar("T")
Use = Literal["read", "written", "counted"]
SUBJECTS: dict[Use, str] = {"read": "the result cache", "written": "the result cache", "counted": "the usage of a run"}
"""What cannot be read, written or counted after an error, for log lines."""
Count = Callable[[int], None]
"""Callback that receives a number of values."""


def ignore(count: int) -> None:
    """Do nothing; the default callback of type `Count`."""


class RedisLink:
    """An optional connection to a Redis server; belongs to one event loop.

    Args:
        url: the server's URL; empty to use no Redis.
        dropped: callback that receives the number of values that were not written.
        refused: callback that receives the number of invalid values that were read.

    Raises:
        SettingsError: the package `redis` is not installed.
    """

    def __init__(self, url: str, dropped: Count = ignore, refused: Count = ignore) -> None:
        self.dropped = dropped
        self._refused = refused
        self._redis = _connect(url) if url else None
        self._rest_until = dict.fromkeys(SUBJECTS, 0.0)
        self._logged: set[str] = set()

    @property
    def present(self) -> bool:
        """Whether a Redis is configured."""
        return self._redis is not None

    async def guarded(self, what: Use, use: Callable[[Any], Awaitable[T]]) -> T | None:
        """Return the result of `use(redis)`; None if Redis is not configured, fails, times out, or failed recently.

        Args:
            what: the kind of access; one that fails does not stop the other kinds.
            use: reads, writes or counts with the Redis client that it receives.
        """
        if self._redis is None or time.monotonic() < self._rest_until[what]:
            return None
        import redis

        try:
            result = await within(WAIT, use(self._redis))
        except (redis.RedisError, OSError, asyncio.TimeoutError) as error:
            self._rest(what, str(error).partition("\n")[0] or "no answer in time")
            return None
        if what in self._logged:
            self._logged.remove(what)
            log.warning("%s can be %s again", SUBJECTS[what], what)
        return result

    def _rest(self, what: Use, reason: str) -> None:
        self._rest_until[what] = time.monotonic() + REST
        if what not in self._logged:
            self._logged.add(what)
            log.warning("%s cannot be %s: %s; scoring continues without it", SUBJECTS[what], what, reason)

    def refuse(self, count: int) -> None:
        """Report that `count` invalid values were read; log a warning the first time."""
        if not count:
            return
        self._refused(count)
        if "refused" not in self._logged:
            self._logged.add("refused")
            log.warning(
                "ignoring invalid values in the result cache: malformed, out of their function's range, or not signed "
                "with this REWARD_CACHE_SECRET; they are computed again (run `rewardstack check` for details)"
            )

    async def close(self) -> None:
        """Close the connections."""
        if self._redis is not None:
            await self._redis.aclose()


def _connect(url: str) -> Any:
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
    except ImportError as error:
        raise SettingsError(
            'REWARD_CACHE_URL: the package redis is not installed; pip install "redis[hiredis]"', "REWARD_CACHE_URL"
        ) from error
    pool = BlockingConnectionPool.from_url(
        url, max_connections=CONNECTIONS, timeout=WAIT, socket_timeout=WAIT, socket_connect_timeout=WAIT
    )
    return Redis.from_pool(pool)  # closes the pool with the client
