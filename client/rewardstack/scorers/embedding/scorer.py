"""The embedding scorer: a response's similarity to its most similar reference, times a penalty factor.

The penalty factor depends on the lengths of the response and of this reference (`penalties`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardstack.cache.key import PIPELINE_VERSION, PREFIX, UNIT, Key, digest, hex_digest
from rewardstack.core.batching import BatchKey
from rewardstack.core.cost import estimate_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, ServiceError
from rewardstack.pipeline.scorer import Context
from rewardstack.score import Item, OnError, Score, Usage
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import Destination, FindPool, Servers
from rewardstack.scorers.embedding.options import Options, RequestParams
from rewardstack.scorers.embedding.protocol import BATCH, ServerInfo
from rewardstack.scorers.embedding.sample import (
    SOURCE,
    Sample,
    describe_comparisons,
    lexical_score,
    read_sample,
    vector_scores,
)
from rewardstack.scorers.embedding.server import Server, VectorOrError
from rewardstack.scorers.embedding.vectors import Embedder, VectorStore
from rewardstack.scorers.relay import Relayable
from rewardstack.settings import Settings
from rewardstack.transport.discovery import optional_wait

VERSION = "1"
"""Part of cache keys; increment it when a change of the code gives the same texts another score."""
BATCH_SIZE = 4096
"""Maximum number of samples in a batch; an `Embedder` splits the texts of a batch into requests."""
MAX_EMBEDDERS = 64
"""Maximum number of embedders to keep. Each model name or prompt name in a sample needs its own embedder, so without a
maximum, clients of a reward server could create any number of embedders."""
OPTION_NAMES = {
    "length_penalty": "penalty",
    "length_threshold": "threshold",
    "prompt_prefix": "prefix",
    "cache_enabled": "cached",
    "model_name": "model",
}
"""Maps fields of `extra_info` to their names in `Options` or `RequestParams`, for fields whose names differ."""

log = logging.getLogger(__name__)


class BatchParams(NamedTuple):
    """What all samples of a batch share: server, request parameters, and whether vectors are cached."""

    destination: Destination
    params: RequestParams
    cached: bool


class Embedding(Relayable[Sample]):
    """Scores the similarity of responses to their references with an embedding server.

    Args:
        settings: the settings, with servers, key and timeout.
        find_pool: returns the pool of endpoints for URLs and a key.
        store: the vector cache.
        tenant: cache namespace of the caller.
        meter: counts the usage of requests.
    """

    source = SOURCE
    on_error: OnError = "lexical"
    fallback = staticmethod(lexical_score)

    def __init__(self, settings: Settings, find_pool: FindPool, store: VectorStore, tenant: str, meter: Meter) -> None:
        self.timeout = settings.embedding_timeout
        self._destinations = Servers(
            "EMBEDDING_SERVER_URL",
            settings.embedding_urls,
            settings.embedding_api_key,
            "start a server with `make up`, then `export EMBEDDING_SERVER_URL=http://localhost:8080`",
        )
        self._find_pool = find_pool
        self._store = store
        self._tenant = tenant
        self._meter = meter
        self._is_cache_on = settings.is_cache_enabled
        self._servers: dict[Destination, Server] = {}
        self._embedders: dict[tuple[Destination, ServerInfo, RequestParams], Embedder] = {}

    def prepare(self, item: Item, destination: Destination | None = None) -> Sample | Score:
        """Return the sample, or its score if it needs no server: the response is blank, or there is no reference.

        Raises:
            SettingsError: no server is set.
            RequestError: an option or the sample's `server_url` is malformed.
        """
        return read_sample(item, lambda extra: destination or self._destinations.destination(extra))

    async def keys(self, samples: Sequence[Sample], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, which depend on the model; None if the model is unknown or caching is off."""
        keys: list[Key | None] = [None] * len(samples)
        destinations = {sample.destination for sample in samples if sample.options.cached}
        known = await self._fetch_infos(destinations, context.deadline)
        prefixes: dict[tuple[Destination, Options], Any] = {}
        for index, sample in enumerate(samples):
            info = known.get(sample.destination)
            if info is None or not sample.options.cached:
                continue
            key = sample.destination, sample.options
            if key not in prefixes:
                prefixes[key] = _key_prefix(info, sample.options)
            if prefixes[key] is not None:
                keys[index] = Key(PREFIX + hex_digest(prefixes[key], sample.solution, *sample.references), range=UNIT)
        return keys

    async def _fetch_infos(
        self, destinations: Collection[Destination], deadline: SharedDeadline
    ) -> dict[Destination, ServerInfo]:
        """Return what each server reports about itself; leave out servers that do not answer.

        With several servers, wait only `optional_wait(deadline)` seconds, so that a server that is down does not delay
        the samples of the other servers.
        """
        wait = math.inf if len(destinations) == 1 else optional_wait(deadline)
        requests = [self._server(one).info(deadline, wait) for one in destinations]
        known: dict[Destination, ServerInfo] = {}
        for one, info in zip(destinations, await asyncio.gather(*requests, return_exceptions=True), strict=True):
            if isinstance(info, ServerInfo):
                known[one] = info
            elif not isinstance(info, ServiceError):
                raise info
        return known

    def batch(self, sample: Sample) -> BatchKey:
        """Return the batch key: samples with the same server and request parameters share batches."""
        return BatchKey(BATCH_SIZE, self._batch_params(sample))

    async def score(self, samples: Sequence[Sample], context: Context) -> list[Score]:
        """Return one score for each sample; the first score has the usage of all requests since the last call.

        The usage of single samples is unknown, because a request contains texts of many samples and of several calls.

        Raises:
            DeadlineError, ReplyError: the server did not answer when asked for its model.
            RefusedKeyError: the server refuses the key.
            BudgetError: the budget is used up; the vectors received so far are cached.
        """
        batch_params = self._batch_params(samples[0])
        if context.trace is not None:
            batch_params = batch_params._replace(cached=False)
        try:
            vectors = await self._get_vectors(batch_params, samples, context.deadline)
        except BudgetError as error:
            error.usage = self._meter.pop()
            raise
        if context.trace is not None:
            truncation = "the server truncates texts that are too long for its model, and does not report it"
            note = {"note": truncation} if batch_params.params.truncate else {}
            context.trace.note("vectors", {"compared": describe_comparisons(samples[0], vectors), **note})
        scores = await vector_scores(samples, vectors)
        scores[0].usage = self._meter.pop()
        return scores

    def _batch_params(self, sample: Sample) -> BatchParams:
        return BatchParams(sample.destination, sample.options.params, sample.options.cached and self._is_cache_on)

    async def quote(self, samples: Sequence[Sample], context: Context) -> Usage:
        """Return the estimated usage as if no vector were cached.

        Usually few of the needed vectors are cached, because samples with a cached score are not in `samples`.
        """
        return self.estimate(samples)

    def estimate(self, samples: Sequence[Sample]) -> Usage:
        """Return the estimated usage of samples if each distinct text is sent once, in requests of `BATCH` texts."""
        texts = {text for sample in samples for text in (sample.candidate, *sample.targets)}
        requests = -(-len(texts) // BATCH)
        return Usage(requests, sum(map(estimate_tokens, texts)), 0, requests)

    def report(self, scores: Sequence[Score], seconds: float) -> None:
        """Log a summary of a batch."""
        cached = sum(score.cached for score in scores)
        usage = Usage.total(score.usage for score in scores)
        log.info("%s: %d samples in %.2f s; %d cached; %s", self.source, len(scores), seconds, cached, usage.summary)

    def describe(self, item: Item, sample: Sample) -> Record:
        """Return the servers, the texts to embed, and the options with their origin."""
        texts = {"candidate": sample.candidate, "references": sample.targets}
        options = {**sample.options._asdict(), **sample.options.params._asdict()}
        del options["params"]
        set_options = {OPTION_NAMES.get(name, name) for name, value in item.extra.items() if value is not None}
        origins = {
            name: {"value": value, "from": "extra_info" if name in set_options else "default"}
            for name, value in options.items()
        }
        return {"servers": list(sample.destination.urls), **texts, "options": origins}

    async def _get_vectors(
        self, batch_params: BatchParams, samples: Sequence[Sample], deadline: SharedDeadline
    ) -> dict[str, VectorOrError]:
        """Return the vector or the error of each text."""
        if batch_params.cached:
            self._store.memory.resize(max(sample.options.cache_size for sample in samples))
        embedder = self._embedder(batch_params, await self._server(batch_params.destination).info(deadline))
        texts = {text for sample in samples for text in (sample.candidate, *sample.targets)}
        vectors = await embedder.vectors(texts, deadline, cached=batch_params.cached)
        for one in vectors.values():
            if isinstance(one, BudgetError):
                raise one
        return vectors

    def _server(self, destination: Destination) -> Server:
        if destination not in self._servers:
            with_key_hint = partial(self._destinations.with_key_hint, destination=destination)
            self._servers[destination] = Server(self._find_pool(*destination), with_key_hint, self._meter)
        return self._servers[destination]

    def _embedder(self, batch_params: BatchParams, info: ServerInfo) -> Embedder:
        key = batch_params.destination, info, batch_params.params
        if key not in self._embedders:
            if len(self._embedders) >= MAX_EMBEDDERS:
                del self._embedders[next(iter(self._embedders))]
            server = self._server(batch_params.destination)
            self._embedders[key] = Embedder(server, info, batch_params.params, self._store, self._tenant)
        return self._embedders[key]


def _key_prefix(info: ServerInfo, options: Options) -> Any | None:
    """Return a hash of all inputs of a score except the texts; None if the model is unknown."""
    if not (info.identity or options.params.model):
        return None
    parts = [*options.params, options.prefix, options.penalty, options.threshold]
    return digest((SOURCE, PIPELINE_VERSION, VERSION, info.identity, json.dumps(parts)))
