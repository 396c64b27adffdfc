"""A two-level cache: memory first, then Redis, which is written in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from rewardstack.cache.link import Count, RedisLink, ignore
from rewardstack.cache.signature import OVERHEAD, Signer
from rewardstack.cache.value import MAX_BYTES, decode, encode
from rewardstack.cache.writer import Writer
from rewardstack.core.lru import LruCache
from rewardstack.score import Score
from rewardstack.settings import Settings

READ_SIZE = 1000
"""Number of scores to read in one round trip; more would block Redis or the event loop for too long."""
READ = """
local found = {}
for i = 1, #KEYS do
    local value = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[1])
    if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE') then return value end
    found[i] = type(value) == 'string' and value
end
return found
"""
"""Lua script that reads strings, and skips keys of other types.

`ARGV[1]` is the maximum size of a string in bytes. The script returns the first `ARGV[1] + 1` bytes of a larger string,
so that the caller can detect that the string is too large.
"""
WRITE = "for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[i + 1], 'EX', ARGV[1]) end"
"""Lua script that writes all values with one command; with one command per value, redis-py takes five times as long."""
MAX_QUEUE = 20
"""Maximum length of the write queue, as a multiple of `Codec.read_size`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """The encoding of values in Redis.

    Args:
        encode: returns the bytes of a value for a key.
        decode: returns the value of a key from its bytes; None if they are invalid.
        read_size: number of values to read in one round trip.
        max_bytes: maximum size of an encoded value, in bytes; larger values are neither written nor accepted.
    """

    encode: Callable[[str, T], bytes]
    decode: Callable[[str, bytes], T | None]
    read_size: int
    max_bytes: int

    def with_signature(self, secret: str) -> Codec[T]:
        """Return a codec that signs and verifies values (`cache.signature`); `self` if `secret` is empty."""
        if not secret:
            return self
        signer = Signer(secret)

        def encode(key: str, value: T) -> bytes:
            return signer.sign(key, self.encode(key, value))

        def decode(key: str, data: bytes) -> T | None:
            payload = signer.verify(key, data)
            return None if payload is None else self.decode(key, payload)

        return replace(self, encode=encode, decode=decode, max_bytes=self.max_bytes + OVERHEAD)


class Store(Generic[T]):
    """A store of values by key, in memory and in Redis; belongs to one event loop.

    Args:
        link: the connection to Redis.
        size: maximum number of values in this process's memory.
        ttl: time to live of a value in Redis, in seconds.
        codec: the encoding of values in Redis.
        secret: signs the values in Redis; empty for no signature.
    """

    def __init__(self, link: RedisLink, size: int, ttl: int, codec: Codec[T], secret: str = "") -> None:
        self.link = link
        self.memory: LruCache[str, T] = LruCache(size)
        self._ttl = ttl
        self._codec = codec.with_signature(secret)
        self._writer: Writer[T] = Writer(self._write, codec.read_size * MAX_QUEUE, link.on_dropped)

    def get_from_memory(self, keys: Iterable[str]) -> list[T | None]:
        """Return the values in this process's memory, in the order of `keys`; None for a missing key."""
        return [self.memory.get(key) for key in keys]

    def put_in_memory(self, entries: Iterable[tuple[str, T]]) -> None:
        """Store values in this process's memory only."""
        for key, value in entries:
            self.memory.put(key, value)

    async def read_redis(
        self, keys: Sequence[str], is_plausible: Callable[[str, T], bool] = lambda key, value: True
    ) -> dict[str, T]:
        """Return the valid values in Redis by key, and put them in this process's memory.

        If Redis fails, return only the values that were read before the failure. Invalid values are reported and
        ignored: those that cannot be decoded, are too large, have no valid signature, or are not plausible.

        Args:
            keys: the keys to look up.
            is_plausible: returns whether a value is plausible for a key, e.g. whether a score is in the key's range.
        """
        found: dict[str, T] = {}
        if not self.link.is_configured:
            return found
        invalid_count = 0
        for start in range(0, len(keys), self._codec.read_size):
            batch = keys[start : start + self._codec.read_size]
            values = await self._read(batch)
            if values is None:
                break
            for key, data in zip(batch, values, strict=True):
                if not data:
                    continue
                value = self._codec.decode(key, data) if len(data) <= self._codec.max_bytes else None
                if value is None or not is_plausible(key, value):
                    invalid_count += 1
                    continue
                found[key] = value
                self.memory.put(key, value)
        self.link.report_invalid(invalid_count)
        return found

    def invalidate(self, keys: Sequence[str]) -> None:
        """Remove the values of `keys` from this process's memory, and report them as invalid."""
        for key in keys:
            self.memory.remove(key)
        self.link.report_invalid(len(keys))

    def put(self, entries: Sequence[tuple[str, T]]) -> None:
        """Store values in this process's memory, and in Redis in the background."""
        self.put_in_memory(entries)
        if self.link.is_configured:
            self._writer.put(entries)

    async def flush(self) -> None:
        """Write queued values to Redis, within a time limit."""
        await self._writer.flush()

    async def _read(self, keys: Sequence[str]) -> list[bytes | None] | None:
        def evaluate(redis: Any) -> Awaitable[list[bytes | None]]:
            values: Awaitable[list[bytes | None]] = redis.eval(READ, len(keys), *keys, self._codec.max_bytes)
            return values

        return await self.link.execute("read", evaluate)

    async def _write(self, entries: Sequence[tuple[str, T]]) -> bool:
        """Write values to Redis, except those that are too large; return whether the write succeeded."""
        encoded = {key: self._codec.encode(key, value) for key, value in entries}
        values = {key: data for key, data in encoded.items() if len(data) <= self._codec.max_bytes}
        if len(values) < len(encoded):
            self.link.on_dropped(len(encoded) - len(values))
        if not values:
            return True

        async def write(redis: Any) -> bool:
            await redis.eval(WRITE, len(values), *values, self._ttl, *values.values())
            return True

        return await self.link.execute("written", write) is not None


class ResultCache(Store[Score]):
    """A cache of scores with status `ok`.

    Args:
        settings: the client's settings.
        on_dropped: callback that receives the number of values that were not written to Redis.
        on_invalid: callback that receives the number of invalid values that were read from Redis.
    """

    def __init__(self, settings: Settings, on_dropped: Count = ignore, on_invalid: Count = ignore) -> None:
        self.is_enabled = settings.is_cache_enabled
        """Whether the settings enable the cache."""
        url, items = (settings.cache_url, settings.cache_items) if self.is_enabled else ("", 0)
        link, codec = RedisLink(url, on_dropped, on_invalid), Codec(encode, decode, READ_SIZE, MAX_BYTES)
        super().__init__(link, items, settings.cache_ttl, codec, settings.cache_secret)
        self.has_storage = link.is_configured or items > 0
        """Whether the cache stores anything, in memory or in Redis."""

    async def close(self) -> None:
        """Write queued values, within a time limit, and close the connections."""
        await self.flush()
        await self.link.close()
