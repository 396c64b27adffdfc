"""Vectors by text: from this process's memory, from Redis, or from the server, with each text in flight only once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np

from rewardstack.cache.key import PREFIX, digest, extended
from rewardstack.cache.link import RedisLink
from rewardstack.cache.store import Codec, Store
from rewardstack.core.batching import Batcher, BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ServiceError
from rewardstack.scorers.embedding.options import CACHE_SIZE, Asked
from rewardstack.scorers.embedding.protocol import About
from rewardstack.scorers.embedding.server import Found, Server
from rewardstack.scorers.embedding.similarity import Vector

VERSION = "1"
"""Increment this when the stored value of a text changes."""
CHECK = 8
"""Characters of its key that a stored vector contains, to detect a vector of another key."""
SLICE = 128
"""Vectors in one round trip to Redis: 1 MB at 4096 dimensions."""
MOST_BYTES = 2**16
"""Most bytes of a vector in Redis: 32,000 dimensions."""


class VectorStore(Store[Vector]):
    """A cache of vectors; arguments are those of `Store`."""

    def __init__(self, link: RedisLink, ttl: int, secret: str = "") -> None:
        super().__init__(link, CACHE_SIZE, ttl, Codec(encode_vector, decode_vector, SLICE, MOST_BYTES), secret)


def encode_vector(key: str, vector: Vector) -> bytes:
    """Return the bytes of a vector to store under `key`: the key's suffix, the number of dimensions, the numbers."""
    return key[-CHECK:].encode() + len(vector).to_bytes(4, "little") + vector.astype("<f2").tobytes()


def decode_vector(key: str, data: bytes) -> Vector | None:
    """Return the vector in `data`, None if `data` is not valid for `key`."""
    dimensions = int.from_bytes(data[CHECK : CHECK + 4], "little")
    if data[:CHECK] != key[-CHECK:].encode() or not dimensions or len(data) != CHECK + 4 + 2 * dimensions:
        return None
    vector: Vector = np.frombuffer(data, dtype="<f2", offset=CHECK + 4).astype(np.float16)
    return vector if np.isfinite(vector).all() else None


class Embedder:
    """Returns the vectors of texts from one server with fixed request parameters.

    Args:
        server: computes the vectors.
        about: its information.
        asked: request parameters.
        store: vector cache, shared with other embedders.
        tenant: cache namespace of the caller.
    """

    def __init__(self, server: Server, about: About, asked: Asked, store: VectorStore, tenant: str) -> None:
        self._server = server
        self._asked = asked
        self._store = store
        self._keeps = bool(about.identity or asked.model)
        demands = (about.identity, asked.model, asked.prompt_name, str(asked.truncate))
        self._state = digest(("vector", VERSION, *demands, tenant))
        self._key = BatchKey(about.batch)
        self._batcher: Batcher[tuple[str, str], Found] = Batcher(self._make, has_failed=_has_failed)
        self._size = 0

    async def vectors(self, texts: Collection[str], deadline: SharedDeadline, *, cached: bool) -> dict[str, Found]:
        """Return the vector or the error of each text; texts must not be empty, and `cached` enables the cache."""
        # Texts of similar length share a request, because a server pads each batch to its longest text.
        ordered = sorted(set(texts), key=lambda text: (len(text), text))
        keys = {text: PREFIX + extended(self._state, text) for text in ordered}
        read = await self._read(keys) if cached and self._keeps else {}
        asked: dict[str, Found] = {}
        while True:  # repeats if new vectors show that cached ones are from another model
            foreign = self._foreign(read)
            self._store.invalidate([keys[text] for text in foreign])
            read = {text: one for text, one in read.items() if text not in foreign}
            missing = {text: key for text, key in keys.items() if text not in read and text not in asked}
            if not missing:
                return {**read, **asked}
            asked |= await self._ask(missing, deadline, cached)

    async def _read(self, keys: Mapping[str, str]) -> dict[str, Vector]:
        """Return the cached vectors of texts, given the texts' keys."""
        found = dict(zip(keys.values(), self._store.recall(keys.values()), strict=True))
        found.update(await self._store.read_redis([key for key, one in found.items() if one is None]))
        return {text: one for text, key in keys.items() if (one := found[key]) is not None}

    async def _ask(self, keys: dict[str, str], deadline: SharedDeadline, cached: bool) -> dict[str, Found]:
        items = [(text, key if cached else "") for text, key in keys.items()]
        shares = [key or None for _, key in items]
        found = await self._batcher.ask(items, [self._key] * len(items), deadline, shares)
        return {text: cast(Found, one) for text, one in zip(keys, found, strict=True)}

    async def _make(self, items: Sequence[tuple[str, str]], deadline: SharedDeadline) -> Sequence[Found]:
        """Return the vector or error of each text from the server; cache vectors with a key if the model is known."""
        found = await self._server.embed([text for text, _ in items], self._asked, deadline)
        self._size = next((len(one) for one in found if isinstance(one, np.ndarray)), self._size)
        if self._keeps:
            outcomes = zip(items, found, strict=True)
            self._store.put([(key, one) for (_, key), one in outcomes if key and isinstance(one, np.ndarray)])
        return found

    def _foreign(self, read: Mapping[str, Vector]) -> set[str]:
        """Return the texts whose cached vectors cannot be from this model, because their dimensions do not match."""
        sizes = {len(one) for one in read.values()}
        size = self._size or (sizes.pop() if len(sizes) == 1 else 0)
        return {text for text, one in read.items() if len(one) != size}


def _has_failed(outcome: Found | Exception) -> bool:
    """Return whether the server failed to answer, rather than rejected the text."""
    return isinstance(outcome, ServiceError) and not isinstance(outcome, RejectedError)
