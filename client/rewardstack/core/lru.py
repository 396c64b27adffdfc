"""A least recently used (LRU) cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """A bounded cache that evicts the least recently used value; values must not be None; not thread-safe.

    Args:
        size: maximum number of values; 0 disables the cache.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of `key`; None if the cache does not have the key."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Store `value` under `key`."""
        if not self.size:
            return
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.size:
            self._values.popitem(last=False)

    def remove(self, key: K) -> None:
        """Remove `key`."""
        self._values.pop(key, None)

    def resize(self, size: int) -> None:
        """Set the maximum number of values, and evict the least recently used values beyond it."""
        self.size = size
        while len(self._values) > size:
            self._values.popitem(last=False)
