"""The embedding scorer: a response's similarity to its best reference, times a length penalty."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardstack.cache.key import FLOW_VERSION, PREFIX, UNIT, Key, digest, hex_digest
from rewardstack.core.batching import BatchKey
from rewardstack.core.cost import estimate_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, ServiceError
from rewardstack.pipeline.scorer import Context
from rewardstack.score import Item, OnError, Score, Usage
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.scorers.embedding.options import Asked, Options
from rewardstack.scorers.embedding.protocol import BATCH, About
from rewardstack.scorers.embedding.sample import SOURCE, Sample, comparisons, lexical_score, read_sample, vector_scores
from rewardstack.scorers.embedding.server import Found, Server
from rewardstack.scorers.embedding.vectors import Embedder, VectorStore
from rewardstack.scorers.reward_server import Relayable
from rewardstack.settings import Settings
from rewardstack.transport.discovery import optional_wait

VERSION = "1"
"""Increment this when a change of the code gives the same texts another score; it is part of cache keys."""
BATCH_SIZE = 4096
"""Maximum number of samples in a batch; `vectors` splits the texts of a batch into requests to the server."""
EMBEDDERS = 64
"""Maximum number of embedders to keep; a client of a reward server can name any number of models and prompts."""
OPTION_OF = {
    "length_penalty": "penalty",
    "length_threshold": "threshold",
    "prompt_prefix": "prefix",
    "cache_enabled": "cached",
    "model_name": "model",
}
"""Names in `Options` and `Asked` by field of `extra_info`, where the names differ."""

log = logging.getLogger(__name__)


class Part(NamedTuple):
    """What all samples of a batch have in common: server, request parameters, and whether vectors are cached."""

    destination: Destination
    asked: Asked
    cached: bool


class Embedding(Relayable[Sample]):
    """Scores the similarity of responses to their references with an embedding server.

    Args:
        settings: the settings, with servers, key and timeout.
        find_service: returns the pool of endpoints for URLs and a key.
        store: the vector cache.
        tenant: cache namespace of the caller.
        meter: counts the usage of requests.
    """

    source = SOURCE
    on_error: OnError = "lexical"
    fallback = staticmethod(lexical_score)

    def __init__(
        self, settings: Settings, find_service: FindService, store: VectorStore, tenant: str, meter: Meter
    ) -> None:
        self.timeout = settings.embedding_timeout
        self._destinations = Servers(
            "EMBEDDING_SERVER_URL",
            settings.embedding_urls,
            settings.embedding_api_key,
            "start a server with `make up` and `export EMBEDDING_SERVER_URL=http://localhost:8080`",
        )
        self._find = find_service
        self._store = store
        self._tenant = tenant
        self._meter = meter
        self._cached = settings.is_cache_enabled
        self._servers: dict[Destination, Server] = {}
        self._embedders: dict[tuple[Destination, About, Asked], Embedder] = {}

    def prepare(self, item: Item, destination: Destination | None = None) -> Sample | Score:
        """Return the sample, or its score if it needs no server: the response is blank, or there is no reference.

        Raises:
            SettingsError: no server is set.
            RequestError: an option or the sample's `server_url` is malformed.
        """
        return read_sample(item, lambda extra: destination or self._destinations.destination(extra))

    async def keys(self, samples: Sequence[Sample], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, which include the model; None if the model is unknown or caching is off."""
        keys: list[Key | None] = [None] * len(samples)
        wanted = {sample.destination for sample in samples if sample.options.cached}
        known = await self._meet(wanted, context.deadline)
        states: dict[tuple[Destination, Options], Any] = {}
        for at, sample in enumerate(samples):
            about = known.get(sample.destination)
            if about is None or not sample.options.cached:
                continue
            which = sample.destination, sample.options
            if which not in states:
                states[which] = _state(about, sample.options)
            if states[which] is not None:
                keys[at] = Key(PREFIX + hex_digest(states[which], sample.solution, *sample.references), range=UNIT)
        return keys

    async def _meet(self, destinations: Collection[Destination], deadline: SharedDeadline) -> dict[Destination, About]:
        """Return what each server reports about itself; with several servers, one that is down delays no other."""
        wait = math.inf if len(destinations) == 1 else optional_wait(deadline)
        asked = [self._server(one).about(deadline, wait) for one in destinations]
        known: dict[Destination, About] = {}
        for one, about in zip(destinations, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(about, About):
                known[one] = about
            elif not isinstance(about, ServiceError):
                raise about
        return known

    def batch(self, sample: Sample) -> BatchKey:
        """Return the batch key: samples with the same server and request parameters share batches."""
        return BatchKey(BATCH_SIZE, self._part(sample))

    async def score(self, samples: Sequence[Sample], context: Context) -> list[Score]:
        """Return one score for each sample; the first score carries the usage of all requests since the last call.

        A request contains texts of many samples, also of other calls, so usage cannot be attributed to single samples.

        Raises:
            DeadlineError, ReplyError: the server did not answer the question for its model.
            RefusedKeyError: the server refuses the key.
            BudgetError: the budget is spent; the vectors received so far are cached.
        """
        part = self._part(samples[0])
        if context.trace is not None:
            part = part._replace(cached=False)
        try:
            found = await self._found(part, samples, context.deadline)
        except BudgetError as error:
            error.usage = self._meter.take()
            raise
        if context.trace is not None:
            cut = "the server truncates texts that are too long for its model, and does not report it"
            note = {"note": cut} if part.asked.truncate else {}
            context.trace.note("vectors", {"compared": comparisons(samples[0], found), **note})
        scores = await vector_scores(samples, found)
        scores[0].usage = self._meter.take()
        return scores

    def _part(self, sample: Sample) -> Part:
        return Part(sample.destination, sample.options.asked, sample.options.cached and self._cached)

    async def quote(self, samples: Sequence[Sample], context: Context) -> Usage:
        """Return the estimated usage, as if no vector were cached; most cached vectors belong to cached scores."""
        return self.estimate(samples)

    def estimate(self, samples: Sequence[Sample]) -> Usage:
        """Return the estimated usage of samples if each distinct text is sent once, in full requests."""
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
        options = {**sample.options._asdict(), **sample.options.asked._asdict()}
        del options["asked"]
        given = {OPTION_OF.get(name, name) for name, value in item.extra.items() if value is not None}
        origins = {
            name: {"value": value, "from": "extra_info" if name in given else "default"}
            for name, value in options.items()
        }
        return {"asked": list(sample.destination.urls), **texts, "options": origins}

    async def _found(self, part: Part, samples: Sequence[Sample], deadline: SharedDeadline) -> dict[str, Found]:
        """Return the vector or the error of each text."""
        if part.cached:
            self._store.memory.resize(max(sample.options.cache_size for sample in samples))
        embedder = self._embedder(part, await self._server(part.destination).about(deadline))
        texts = {text for sample in samples for text in (sample.candidate, *sample.targets)}
        found = await embedder.vectors(texts, deadline, cached=part.cached)
        for one in found.values():
            if isinstance(one, BudgetError):
                raise one
        return found

    def _server(self, destination: Destination) -> Server:
        if destination not in self._servers:
            explained = partial(self._destinations.explained, destination=destination)
            self._servers[destination] = Server(self._find(*destination), explained, self._meter)
        return self._servers[destination]

    def _embedder(self, part: Part, about: About) -> Embedder:
        which = part.destination, about, part.asked
        if which not in self._embedders:
            if len(self._embedders) >= EMBEDDERS:
                del self._embedders[next(iter(self._embedders))]
            server = self._server(part.destination)
            self._embedders[which] = Embedder(server, about, part.asked, self._store, self._tenant)
        return self._embedders[which]


def _state(about: About, options: Options) -> Any | None:
    """Return a hash of everything that determines a score except the texts; None if the model is unknown."""
    if not (about.identity or options.asked.model):
        return None
    what = [*options.asked, options.prefix, options.penalty, options.threshold]
    return digest((SOURCE, FLOW_VERSION, VERSION, about.identity, json.dumps(what)))
