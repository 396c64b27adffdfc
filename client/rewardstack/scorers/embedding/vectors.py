"""Vectors of texts: from this process's memory, from Redis, or from the server, where a text is in flight only once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np

from rewardstack.cache.key import PREFIX, digest, hex_digest
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
"""Increment this when a change of the code gives the same text another stored vector; it is part of cache keys."""
CHECK = 8
"""Number of characters from the end of the key that are stored with a vector, to detect a vector of another key."""
SLICE = 128
"""Number of vectors in one round trip to Redis: 1 MB at 4096 dimensions."""
MOST_BYTES = 2**16
"""Maximum size of a stored vector, in bytes: about 32,000 dimensions."""


class VectorStore(Store[Vector]):
    """A cache of vectors.

    Args:
        link: the connection to Redis.
        ttl: time to live of a vector in Redis, in seconds.
        secret: signs the vectors in Redis; empty for no signature.
    """

    def __init__(self, link: RedisLink, ttl: int, secret: str = "") -> None:
        super().__init__(link, CACHE_SIZE, ttl, Codec(encode_vector, decode_vector, SLICE, MOST_BYTES), secret)


def encode_vector(key: str, vector: Vector) -> bytes:
    """Return the bytes to store under `key` for a vector: the end of the key, the number of dimensions, the numbers."""
    return key[-CHECK:].encode() + len(vector).to_bytes(4, "little") + vector.astype("<f2").tobytes()


def decode_vector(key: str, data: bytes) -> Vector | None:
    """Return the vector in `data`; None if `data` is not a valid vector for `key`."""
    dimensions = int.from_bytes(data[CHECK : CHECK + 4], "little")
    if data[:CHECK] != key[-CHECK:].encode() or not dimensions or len(data) != CHECK + 4 + 2 * dimensions:
        return None
    vector: Vector = np.frombuffer(data, dtype="<f2", offset=CHECK + 4).astype(np.float16)
    return vector if np.isfinite(vector).all() else None


class Embedder:
    """Returns the vectors of texts, from the cache or from one server, for fixed request parameters.

    Args:
        server: the server that computes the vectors.
        about: what the server reports about itself.
        asked: the parameters of the requests.
        store: the vector cache, shared with other embedders.
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
        """Return the vector or the error of each text.

        Args:
            texts: non-empty texts.
            deadline: deadline of the batch.
            cached: whether to read and write the cache.
        """
        # Texts of similar length share a request, because servers pad all texts of a request to the longest one.
        ordered = sorted(set(texts), key=lambda text: (len(text), text))
        keys = {text: PREFIX + hex_digest(self._state, text) for text in ordered}
        read = await self._read(keys) if cached and self._keeps else {}
        asked: dict[str, Found] = {}
        while True:  # repeat if new vectors show that cached vectors are from another model
            foreign = self._foreign(read)
            self._store.invalidate([keys[text] for text in foreign])
            read = {text: one for text, one in read.items() if text not in foreign}
            missing = {text: key for text, key in keys.items() if text not in read and text not in asked}
            if not missing:
                return {**read, **asked}
            asked |= await self._ask(missing, deadline, cached)

    async def _read(self, keys: Mapping[str, str]) -> dict[str, Vector]:
        """Return the cached vectors by text, given the key of each text."""
        found = dict(zip(keys.values(), self._store.get_from_memory(keys.values()), strict=True))
        found.update(await self._store.read_redis([key for key, one in found.items() if one is None]))
        return {text: one for text, key in keys.items() if (one := found[key]) is not None}

    async def _ask(self, keys: dict[str, str], deadline: SharedDeadline, cached: bool) -> dict[str, Found]:
        items = [(text, key if cached else "") for text, key in keys.items()]
        shares = [key or None for _, key in items]
        found = await self._batcher.ask(items, [self._key] * len(items), deadline, shares)
        return {text: cast(Found, one) for text, one in zip(keys, found, strict=True)}

    async def _make(self, items: Sequence[tuple[str, str]], deadline: SharedDeadline) -> Sequence[Found]:
        """Return the server's vector or error for each text; cache the vectors of texts with a key."""
        found = await self._server.embed([text for text, _ in items], self._asked, deadline)
        self._size = next((len(one) for one in found if isinstance(one, np.ndarray)), self._size)
        if self._keeps:
            outcomes = zip(items, found, strict=True)
            self._store.put([(key, one) for (_, key), one in outcomes if key and isinstance(one, np.ndarray)])
        return found

    def _foreign(self, read: Mapping[str, Vector]) -> set[str]:
        """Return the texts whose cached vectors have another number of dimensions than the model's, or may have."""
        sizes = {len(one) for one in read.values()}
        size = self._size or (sizes.pop() if len(sizes) == 1 else 0)
        return {text for text, one in read.items() if len(one) != size}


def _has_failed(outcome: Found | Exception) -> bool:
    """Return whether the server failed to answer; a rejected text is an answer."""
    return isinstance(outcome, ServiceError) and not isinstance(outcome, RejectedError)
