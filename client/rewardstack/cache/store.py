"""Values in this process first, in Redis behind it; what is written travels in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rewardstack.cache.link import Count, RedisLink, ignore
from rewardstack.cache.seal import OVERHEAD, Seal
from rewardstack.cache.value import MOST_BYTES, decode, encode
from rewardstack.cache.writer import Writer
from rewardstack.core.lru import LruCache
from rewardstack.score import Score
from rewardstack.settings import Settings

SLICE = 1000
"""Scores read in one round trip: few enough that neither side is held up by them."""
READ = """
local found = {}
for i = 1, #KEYS do
    local value = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[1])
    if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then return value end
    found[i] = type(value) == 'string' and value
end
return found
"""
"""Read values, of each one byte more than a value may have, in one command; a key of another type is no value."""
WRITE = "for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 1], 'EX', ARGV[1]) end"
"""Writes values in one command: with a command each redis-py takes five times as long, most of it for packing them."""
MOST_WAITING = 20
"""Slices that wait to be written at most."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How values stand in Redis.

    Args:
        encode: the bytes for a value under a key.
        decode: the value in such bytes; None where they hold no valid one.
        slice: values read in one round trip.
        most: bytes of a value that is written or read.
    """

    encode: Callable[[str, T], bytes]
    decode: Callable[[str, bytes], T | None]
    slice: int
    most: int

    def sealed(self, secret: str) -> Codec[T]:
        """The same values under seals (`rewardstack.cache.seal`); this one itself where there is no secret."""
        if not secret:
            return self
        seal = Seal(secret)

        def encode(key: str, value: T) -> bytes:
            return seal.put_on(key, self.encode(key, value))

        def decode(key: str, data: bytes) -> T | None:
            bare = seal.take_off(key, data)
            return None if bare is None else self.decode(key, bare)

        return replace(self, encode=encode, decode=decode, most=self.most + OVERHEAD)


class Store(Generic[T]):
    """Values by key; lives on one event loop.

    Args:
        link: to Redis.
        size: values kept in this process.
        ttl: seconds that a value stays in Redis.
        codec: how it stands there.
        secret: with which it is sealed there; empty for no seal.
    """

    def __init__(self, link: RedisLink, size: int, ttl: int, codec: Codec[T], secret: str = "") -> None:
        self.link = link
        self.memory: LruCache[str, T] = LruCache(size)
        self._ttl = ttl
        self._codec = codec.sealed(secret)
        self._writer: Writer[T] = Writer(self._write, codec.slice * MOST_WAITING, link.dropped)

    def recall(self, keys: Iterable[str]) -> list[T | None]:
        """What this process knows under each of `keys`, None for the rest."""
        return [self.memory.get(key) for key in keys]

    def remember(self, entries: Iterable[tuple[str, T]]) -> None:
        """Keeps values in this process alone."""
        for key, value in entries:
            self.memory.put(key, value)

    async def read_redis(
        self, keys: Sequence[str], can_be: Callable[[str, T], bool] = lambda key, value: True
    ) -> dict[str, T]:
        """Return what Redis has under some of `keys`; this process remembers it from now on.

        Args:
            keys: to look up.
            can_be: whether what Redis has under a key can belong there; what cannot is never kept.
        """
        found: dict[str, T] = {}
        if not self.link.present:
            return found
        refused = 0
        for start in range(0, len(keys), self._codec.slice):
            part = keys[start : start + self._codec.slice]
            read = await self._read(part)
            if read is None:
                break
            for key, data in zip(part, read, strict=True):
                if not data:
                    continue
                value = self._codec.decode(key, data) if len(data) <= self._codec.most else None
                if value is None or not can_be(key, value):
                    refused += 1
                    continue
                found[key] = value
                self.memory.put(key, value)
        self.link.refuse(refused)
        return found

    def disbelieve(self, keys: Sequence[str]) -> None:
        """Forgets values that came from Redis and cannot be what belongs under their keys."""
        for key in keys:
            self.memory.drop(key)
        self.link.refuse(len(keys))

    def put(self, entries: Sequence[tuple[str, T]]) -> None:
        """Keeps values, here at once and in Redis soon."""
        self.remember(entries)
        if self.link.present:
            self._writer.put(entries)

    async def flush(self) -> None:
        """Writes what is still on its way to Redis, within a bound."""
        await self._writer.flush()

    async def _read(self, keys: Sequence[str]) -> list[bytes | None] | None:
        def read(redis: Any) -> Awaitable[list[bytes | None]]:
            found: Awaitable[list[bytes | None]] = redis.eval(READ, len(keys), *keys, self._codec.most)
            return found

        return await self.link.guarded("read", read)

    async def _write(self, entries: Sequence[tuple[str, T]]) -> bool:
        encoded = {key: self._codec.encode(key, value) for key, value in entries}
        values = {key: data for key, data in encoded.items() if len(data) <= self._codec.most}
        if len(values) < len(encoded):
            self.link.dropped(len(encoded) - len(values))
        if not values:
            return True

        async def write(redis: Any) -> bool:
            await redis.eval(WRITE, len(values), *values, self._ttl, *values.values())
            return True

        return await self.link.guarded("written", write) is not None


class ResultCache(Store[Score]):
    """Scores by key; only those with status `ok` belong here.

    Args:
        settings: where Redis is, how long results stay, how many this process keeps.
        dropped: told how many values were not written to Redis.
        refused: told how many values that Redis had were not believed.
    """

    def __init__(self, settings: Settings, dropped: Count = ignore, refused: Count = ignore) -> None:
        self.on = settings.cache_on
        """Whether there is to be a cache at all."""
        url, items = (settings.cache_url, settings.cache_items) if self.on else ("", 0)
        link, codec = RedisLink(url, dropped, refused), Codec(encode, decode, SLICE, MOST_BYTES)
        super().__init__(link, items, settings.cache_ttl, codec, settings.cache_secret)
        self.keeps = link.present or items > 0
        """Whether it keeps anything, here or in Redis."""

    async def close(self) -> None:
        """Writes what is on its way, within a bound, and closes the connections."""
        await self.flush()
        await self.link.close()
