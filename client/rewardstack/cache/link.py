"""The connection to Redis: a help, never a need.

Whatever Redis does, a score is neither failed nor held up for longer than `WAIT`. After a failure it is left alone for
`REST` seconds, so a server that hangs costs one wait and not one a sample.
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
"""Seconds that one reading or writing of a slice may take."""
REST = 10.0
"""Seconds without Redis after a failure."""
CONNECTIONS = 8

log = logging.getLogger(__name__)
T = TypeVar("T")
Use = Literal["read", "written"]
Count = Callable[[int], None]
"""Told of a number of values."""


def ignore(count: int) -> None:
    """Counts nothing."""


class RedisLink:
    """One Redis, or none; lives on one event loop.

    Args:
        url: of the Redis; empty for none.
        dropped: told how many values were not written.
        refused: told how many values were read and not believed.

    Raises:
        SettingsError: the package redis is not installed.
    """

    def __init__(self, url: str, dropped: Count = ignore, refused: Count = ignore) -> None:
        self.dropped = dropped
        self._refused = refused
        self._redis = _connect(url) if url else None
        self._rest_until = {"read": 0.0, "written": 0.0}
        self._said: set[str] = set()

    @property
    def present(self) -> bool:
        """Whether there is a Redis at all."""
        return self._redis is not None

    async def guarded(self, what: Use, use: Callable[[Any], Awaitable[T]]) -> T | None:
        """The result of `use(redis)`, None where Redis is absent, resting, slow or refuses."""
        if self._redis is None or time.monotonic() < self._rest_until[what]:
            return None
        import redis

        try:
            result = await within(WAIT, use(self._redis))
        except (redis.RedisError, OSError, asyncio.TimeoutError) as error:
            self._rest(what, str(error).partition("\n")[0] or "no answer in time")
            return None
        if what in self._said:
            self._said.remove(what)
            log.warning("the result cache is %s again", what)
        return result

    def _rest(self, what: Use, reason: str) -> None:
        self._rest_until[what] = time.monotonic() + REST
        if what not in self._said:
            self._said.add(what)
            log.warning("the result cache is not %s: %s; scoring goes on without it", what, reason)

    def refuse(self, count: int) -> None:
        """Tells of values that were read and are not believed; the log says it once."""
        if not count:
            return
        self._refused(count)
        if "refused" not in self._said:
            self._said.add("refused")
            log.warning(
                "the result cache holds values that are not believed: of another form, out of their function's range, "
                "or not sealed with this REWARD_CACHE_SECRET; they are made anew (`rewardstack check` says more)"
            )

    async def close(self) -> None:
        """Closes the connections."""
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
    return Redis.from_pool(pool)  # which closes it in the end
