"""Results in this process first, in Redis behind it.

Redis is a help, never a need: whatever it does, a score is neither failed nor held up for longer than `WAIT`. After a
failure Redis is left alone for `REST` seconds, so a server that hangs costs one wait and not one a sample. What many
callers write at a time goes out together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rewardstack.cache.lru import Memory
from rewardstack.cache.value import decode, encode
from rewardstack.errors import SettingsError
from rewardstack.score import Score
from rewardstack.settings import Settings

WAIT = 1.0
"""Seconds that one reading or writing of a slice may take."""
REST = 10.0
"""Seconds without Redis after a failure."""
SLICE = 1000
"""Keys in one round trip: few enough that neither side is held up by it."""
CONNECTIONS = 8

log = logging.getLogger(__name__)
T = TypeVar("T")


class ResultCache:
    """Scores by key; lives on one event loop.

    Args:
        settings: where Redis is, how long results stay, how many this process keeps.
    """

    def __init__(self, settings: Settings) -> None:
        self._memory = Memory(settings.cache_items)
        self._ttl = settings.cache_ttl
        self._redis = _connect(settings.cache_url) if settings.cache_url else None
        self._unwritten: list[tuple[str, Score]] = []
        self._writing = asyncio.Lock()
        self._rest_until = {"read": 0.0, "written": 0.0}
        self._said: set[str] = set()

    @property
    def keeps(self) -> bool:
        """Whether it keeps anything, here or in Redis."""
        return self._redis is not None or self._memory.size > 0

    async def get(self, keys: Sequence[str]) -> list[Score | None]:
        """What is known under each of `keys`, None for the rest."""
        found = [self._memory.get(key) for key in keys]
        missing = [at for at, score in enumerate(found) if score is None]
        for part in _slices(missing):
            read = await self._guarded("read", lambda redis, part=part: redis.mget([keys[at] for at in part]))
            if read is None:
                break
            for at, data in zip(part, read, strict=True):
                score = decode(keys[at], data) if data is not None else None
                if score is not None:
                    found[at] = score
                    self._memory.put(keys[at], score)
        return found

    async def put(self, entries: Iterable[tuple[str, Score]]) -> None:
        """Keeps scores; only those with status `ok` belong here."""
        entries = list(entries)
        for key, score in entries:
            self._memory.put(key, score)
        self._unwritten += entries
        async with self._writing:
            while self._unwritten:
                part, self._unwritten = self._unwritten[:SLICE], self._unwritten[SLICE:]
                if await self._guarded("written", lambda redis, part=part: self._write(redis, part)) is None:
                    self._unwritten.clear()

    async def close(self) -> None:
        """Closes the connections."""
        if self._redis is not None:
            await self._redis.aclose()

    async def _write(self, redis: Any, entries: Sequence[tuple[str, Score]]) -> bool:
        pipeline = redis.pipeline(transaction=False)
        for key, score in entries:
            pipeline.set(key, encode(key, score), ex=self._ttl)
        await pipeline.execute()
        return True

    async def _guarded(self, what: str, use: Any) -> Any:
        """The result of `use(redis)`, None where Redis is absent, resting, slow or refuses."""
        if self._redis is None or time.monotonic() < self._rest_until[what]:
            return None
        import redis

        try:
            result = await asyncio.wait_for(use(self._redis), WAIT)
        except (redis.RedisError, OSError, asyncio.TimeoutError) as error:
            self._rest(what, str(error).partition("\n")[0] or "no answer in time")
            return None
        if what in self._said:
            self._said.remove(what)
            log.warning("the result cache is %s again", what)
        return result

    def _rest(self, what: str, reason: str) -> None:
        self._rest_until[what] = time.monotonic() + REST
        if what not in self._said:
            self._said.add(what)
            log.warning("the result cache is not %s: %s; scoring goes on without it", what, reason)


def _connect(url: str) -> Any:
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
    except ImportError as error:
        raise SettingsError(
            'REWARD_CACHE_URL: the package redis is not installed; pip install "rewardstack[cache]"', "REWARD_CACHE_URL"
        ) from error
    pool = BlockingConnectionPool.from_url(
        url, max_connections=CONNECTIONS, timeout=WAIT, socket_timeout=WAIT, socket_connect_timeout=WAIT
    )
    return Redis(connection_pool=pool)


def _slices(entries: Sequence[T]) -> Iterable[Sequence[T]]:
    return (entries[start : start + SLICE] for start in range(0, len(entries), SLICE))
