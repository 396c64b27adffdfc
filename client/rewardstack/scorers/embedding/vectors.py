"""Return the vectors of texts from this process's memory, from Redis, or from the server.

With caching, a text that several callers need at the same time is sent to the server once.
"""

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
from rewardstack.scorers.embedding.options import DEFAULT_CACHE_SIZE, RequestParams
from rewardstack.scorers.embedding.protocol import ServerInfo
from rewardstack.scorers.embedding.server import Server, VectorOrError
from rewardstack.scorers.embedding.similarity import Vector

VERSION = "1"
"""Part of cache keys; increment it when a change of the code stores another vector for the same text."""
KEY_SUFFIX = 8
"""Number of characters from the end of a vector's key that are stored with the vector. `decode_vector` compares them
with the key, to detect a vector that was stored for a different key."""
SLICE = 128
"""Number of vectors in one round trip to Redis: 1 MB at 4096 dimensions."""
MAX_BYTES = 2**16
"""Maximum size of a stored vector, in bytes: about 32,000 dimensions."""


class VectorStore(Store[Vector]):
    """A cache of vectors.

    Args:
        link: the connection to Redis.
        ttl: time to live of a vector in Redis, in seconds.
        secret: signs the vectors in Redis; empty for no signature.
    """

    def __init__(self, link: RedisLink, ttl: int, secret: str = "") -> None:
        super().__init__(link, DEFAULT_CACHE_SIZE, ttl, Codec(encode_vector, decode_vector, SLICE, MAX_BYTES), secret)


def encode_vector(key: str, vector: Vector) -> bytes:
    """Return the bytes to store for a vector: the end of `key`, the number of dimensions, and the numbers."""
    return key[-KEY_SUFFIX:].encode() + len(vector).to_bytes(4, "little") + vector.astype("<f2").tobytes()


def decode_vector(key: str, data: bytes) -> Vector | None:
    """Return the vector in `data`; None if `data` is not a valid vector for `key`."""
    dimensions = int.from_bytes(data[KEY_SUFFIX : KEY_SUFFIX + 4], "little")
    if (
        data[:KEY_SUFFIX] != key[-KEY_SUFFIX:].encode()
        or not dimensions
        or len(data) != KEY_SUFFIX + 4 + 2 * dimensions
    ):
        return None
    vector: Vector = np.frombuffer(data, dtype="<f2", offset=KEY_SUFFIX + 4).astype(np.float16)
    return vector if np.isfinite(vector).all() else None


class Embedder:
    """Returns the vectors of texts, from the cache or from one server, for one set of request parameters.

    Args:
        server: the server that computes the vectors.
        info: what the server reports about itself.
        params: the parameters of the requests.
        store: the vector cache, shared with other embedders.
        tenant: cache namespace of the caller.
    """

    def __init__(
        self, server: Server, info: ServerInfo, params: RequestParams, store: VectorStore, tenant: str
    ) -> None:
        self._server = server
        self._params = params
        self._store = store
        self._is_cacheable = bool(info.identity or params.model)
        model = (info.identity, params.model, params.prompt_name, str(params.truncate))
        self._key_prefix = digest(("vector", VERSION, *model, tenant))
        self._batch_key = BatchKey(info.batch)
        self._batcher: Batcher[tuple[str, str], VectorOrError] = Batcher(self._request_vectors, has_failed=_has_failed)
        self._dimensions = 0

    async def vectors(
        self, texts: Collection[str], deadline: SharedDeadline, *, cached: bool
    ) -> dict[str, VectorOrError]:
        """Return the vector or the error of each text.

        Args:
            texts: the texts, none of them empty.
            deadline: deadline of the batch.
            cached: whether to read and write the cache, and to send a text once if several callers need it at the same
                time.
        """
        # Texts of similar length share a request, because servers pad all texts of a request to the longest one.
        ordered = sorted(set(texts), key=lambda text: (len(text), text))
        keys = {text: PREFIX + hex_digest(self._key_prefix, text) for text in ordered}
        cached_vectors = await self._read(keys) if cached and self._is_cacheable else {}
        received: dict[str, VectorOrError] = {}
        while True:  # repeat if new vectors show that cached vectors are of another model
            foreign = self._wrong_size(cached_vectors)
            self._store.invalidate([keys[text] for text in foreign])
            cached_vectors = {text: one for text, one in cached_vectors.items() if text not in foreign}
            missing = {text: key for text, key in keys.items() if text not in cached_vectors and text not in received}
            if not missing:
                return {**cached_vectors, **received}
            received |= await self._ask(missing, deadline, cached)

    async def _read(self, keys: Mapping[str, str]) -> dict[str, Vector]:
        """Return the cached vectors by text, given the key of each text."""
        results = dict(zip(keys.values(), self._store.get_from_memory(keys.values()), strict=True))
        results.update(await self._store.read_redis([key for key, one in results.items() if one is None]))
        return {text: one for text, key in keys.items() if (one := results[key]) is not None}

    async def _ask(self, keys: dict[str, str], deadline: SharedDeadline, cached: bool) -> dict[str, VectorOrError]:
        items = [(text, key if cached else "") for text, key in keys.items()]
        shares = [key or None for _, key in items]
        results = await self._batcher.ask(items, [self._batch_key] * len(items), deadline, shares)
        return {text: cast(VectorOrError, one) for text, one in zip(keys, results, strict=True)}

    async def _request_vectors(
        self, items: Sequence[tuple[str, str]], deadline: SharedDeadline
    ) -> Sequence[VectorOrError]:
        """Return the server's vector or error for each text; cache the vectors of texts with a key."""
        results = await self._server.embed([text for text, _ in items], self._params, deadline)
        self._dimensions = next((len(one) for one in results if isinstance(one, np.ndarray)), self._dimensions)
        if self._is_cacheable:
            outcomes = zip(items, results, strict=True)
            self._store.put([(key, one) for (_, key), one in outcomes if key and isinstance(one, np.ndarray)])
        return results

    def _wrong_size(self, cached_vectors: Mapping[str, Vector]) -> set[str]:
        """Return the texts whose cached vectors have another number of dimensions than the model.

        While the model's number of dimensions is unknown, return all texts if the cached vectors differ in size, else
        an empty set.
        """
        sizes = {len(one) for one in cached_vectors.values()}
        size = self._dimensions or (sizes.pop() if len(sizes) == 1 else 0)
        return {text for text, one in cached_vectors.items() if len(one) != size}


def _has_failed(outcome: VectorOrError | Exception) -> bool:
    """Return whether the server failed to answer. If the server rejects a text, this is an answer, not a failure."""
    return isinstance(outcome, ServiceError) and not isinstance(outcome, RejectedError)
