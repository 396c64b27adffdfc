"""A bounded cache of what was used most recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values other than None by key, least recently used first out; not for several threads at once.

    Args:
        size: values kept; 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value under `key`, None where there is none."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keeps `value` under `key`."""
        if not self.size:
            return
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.size:
            self._values.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forgets what is under `key`."""
        self._values.pop(key, None)

    def resize(self, size: int) -> None:
        """Keeps at most `size` values from now on."""
        self.size = size
        while len(self._values) > size:
            self._values.popitem(last=False)
