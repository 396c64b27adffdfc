"""The connection to Redis, which is optional.

An error of Redis never fails a score. Each operation takes at most `TIMEOUT` seconds. After an error, operations of the
same kind are skipped for `RETRY_AFTER` seconds, so a hanging server costs one timeout, not one per sample.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from rewardstack.core.event_loop import run_with_timeout
from rewardstack.errors import SettingsError

TIMEOUT = 1.0
"""Timeout of one operation in seconds."""
RETRY_AFTER = 10.0
"""Seconds for which operations of a kind are skipped after one of them failed."""
MAX_CONNECTIONS = 8
"""Maximum number of connections in the pool."""

log = logging.getLogger(__name__)
T = TypeVar("T")
Operation = Literal["read", "written", "counted"]
SUBJECTS: dict[Operation, str] = {
    "read": "the result cache",
    "written": "the result cache",
    "counted": "the usage of a run",
}
"""The kinds of operations, each with the subject of its log lines, as in "the result cache cannot be read"."""
Count = Callable[[int], None]
"""Callback that receives a number of values."""


def ignore(count: int) -> None:
    """Do nothing; the default callback of type `Count`."""


class RedisLink:
    """An optional connection to a Redis server; belongs to one event loop.

    Args:
        url: the server's URL; empty to use no Redis.
        on_dropped: callback that receives the number of values that were not written.
        on_invalid: callback that receives the number of invalid values that were read.

    Raises:
        SettingsError: the package `redis` is not installed.
    """

    def __init__(self, url: str, on_dropped: Count = ignore, on_invalid: Count = ignore) -> None:
        self.on_dropped = on_dropped
        self._on_invalid = on_invalid
        self._redis = _connect(url) if url else None
        self._disabled_until = dict.fromkeys(SUBJECTS, 0.0)
        self._logged: set[str] = set()

    @property
    def is_configured(self) -> bool:
        """Whether a Redis server is configured."""
        return self._redis is not None

    async def execute(self, kind: Operation, operate: Callable[[Any], Awaitable[T]]) -> T | None:
        """Return the result of `operate(redis)`; None if Redis is not configured, fails, times out, or failed recently.

        Args:
            kind: the kind of operation; a failure disables only operations of this kind.
            operate: reads, writes or counts with the Redis client that it receives.
        """
        if self._redis is None or time.monotonic() < self._disabled_until[kind]:
            return None
        import redis

        try:
            result = await run_with_timeout(TIMEOUT, operate(self._redis))
        except (redis.RedisError, OSError, asyncio.TimeoutError) as error:
            reason = str(error).partition("\n")[0].rstrip(".") or "no answer in time"
            # Once the main thread has ended, new connections fail, because host names cannot be resolved any more.
            self._disable(kind, reason if threading.main_thread().is_alive() else "the process is exiting")
            return None
        if kind in self._logged:
            self._logged.remove(kind)
            log.warning("%s can be %s again", SUBJECTS[kind], kind)
        return result

    def _disable(self, kind: Operation, reason: str) -> None:
        self._disabled_until[kind] = time.monotonic() + RETRY_AFTER
        if kind not in self._logged:
            self._logged.add(kind)
            log.warning("%s cannot be %s: %s; scoring continues without it", SUBJECTS[kind], kind, reason)

    def report_invalid(self, count: int) -> None:
        """Report that `count` invalid values were read; log a warning the first time."""
        if not count:
            return
        self._on_invalid(count)
        if "invalid" not in self._logged:
            self._logged.add("invalid")
            log.warning(
                "ignoring invalid values in the result cache (malformed, out of range, or not signed with this "
                "REWARD_CACHE_SECRET); they are recomputed (run `rewardstack check` for details)"
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
        url, max_connections=MAX_CONNECTIONS, timeout=TIMEOUT, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
    )
    return Redis.from_pool(pool)  # closes the pool with the client
