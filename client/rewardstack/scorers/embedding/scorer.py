"""The scorer: a candidate's similarity to its best reference, less what the difference in length costs."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardstack.cache.key import FLOW_VERSION, PREFIX, UNIT, Key, digest, extended
from rewardstack.core.batching import BatchKey
from rewardstack.core.cost import estimated_tokens
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
from rewardstack.transport.discovery import briefly

VERSION = "1"
"""Raised whenever the same texts come to another score."""
BATCH_SIZE = 4096
"""Samples whose texts are put together at most; the server's requests are cut from these texts (`vectors`)."""
EMBEDDERS = 64
"""Kept at a time: whoever may ask a reward server may make up models and prompts without end."""
OPTION_OF = {
    "length_penalty": "penalty",
    "length_threshold": "threshold",
    "prompt_prefix": "prefix",
    "cache_enabled": "cached",
    "model_name": "model",
}
"""The options that fields of `extra_info` give, where they are not of one name."""

log = logging.getLogger(__name__)


class Part(NamedTuple):
    """What samples have in common whose texts are embedded together: the server, the options, if vectors are kept."""

    destination: Destination
    asked: Asked
    cached: bool


class Embedding(Relayable[Sample]):
    """Similarity by an embedding server.

    Args:
        settings: the servers, their key, how long to wait.
        find_service: opens connections.
        store: of vectors.
        tenant: whose vectors they are.
        meter: of what requests cost.
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
        self._cached = settings.cache_on
        self._servers: dict[Destination, Server] = {}
        self._embedders: dict[tuple[Destination, About, Asked], Embedder] = {}

    def prepare(self, item: Item, destination: Destination | None = None) -> Sample | Score:
        """Return the sample, or its score if that needs no server: one side is empty.

        Raises:
            SettingsError: no server is set.
            RequestError: an option is malformed, or the sample names a server of its own wrongly.
        """
        return read_sample(item, lambda extra: destination or self._destinations.destination(extra))

    async def keys(self, samples: Sequence[Sample], context: Context) -> list[Key | None]:
        """Return keys with the server's model; None if the server does not say which that is."""
        keys: list[Key | None] = [None] * len(samples)
        wanted = {sample.destination for sample in samples if sample.options.cached}
        said = await self._meet(wanted, context.deadline)
        states: dict[tuple[Destination, Options], Any] = {}
        for at, sample in enumerate(samples):
            about = said.get(sample.destination)
            if about is None or not sample.options.cached:
                continue
            which = sample.destination, sample.options
            if which not in states:
                states[which] = _state(about, sample.options)
            if states[which] is not None:
                keys[at] = Key(PREFIX + extended(states[which], sample.solution, *sample.references), range=UNIT)
        return keys

    async def _meet(self, destinations: Collection[Destination], deadline: SharedDeadline) -> dict[Destination, About]:
        """Return what the servers say of themselves; of several, one that is gone does not delay the others."""
        wait = math.inf if len(destinations) == 1 else briefly(deadline)
        asked = [self._server(one).about(deadline, wait) for one in destinations]
        said: dict[Destination, About] = {}
        for one, about in zip(destinations, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(about, About):
                said[one] = about
            elif not isinstance(about, ServiceError):
                raise about
        return said

    def batch(self, sample: Sample) -> BatchKey:
        """Samples whose texts are embedded in one way travel together."""
        return BatchKey(BATCH_SIZE, self._part(sample))

    async def score(self, samples: Sequence[Sample], context: Context) -> list[Score]:
        """Return one score for each sample; the first of them says what was spent since the last time.

        A request carries texts of many samples, and of several calls: whose it is cannot be told.

        Raises:
            DeadlineError, ReplyError: the server did not say what it is.
            RefusedKeyError: it does not accept the key.
            BudgetError: the run may ask no more; vectors that it had are kept.
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
            cut = "a text longer than the server's model takes is cut there, which the server does not tell"
            note = {"note": cut} if part.asked.truncate else {}
            context.trace.note("vectors", {"compared": comparisons(samples[0], found), **note})
        scores = vector_scores(samples, found)
        scores[0].usage = self._meter.take()
        return scores

    def _part(self, sample: Sample) -> Part:
        return Part(sample.destination, sample.options.asked, sample.options.cached and self._cached)

    async def quote(self, samples: Sequence[Sample], context: Context) -> Usage:
        """Return an estimate without looking up vectors: most texts that have one belong to scores that are cached."""
        return self.estimate(samples)

    def estimate(self, samples: Sequence[Sample]) -> Usage:
        """Return what samples would cost, each text once and in full requests."""
        texts = {text for sample in samples for text in (sample.candidate, *sample.targets)}
        requests = -(-len(texts) // BATCH)
        return Usage(requests, sum(map(estimated_tokens, texts)), 0, requests)

    def report(self, scores: Sequence[Score], seconds: float) -> None:
        """Log one line about a batch."""
        cached = sum(score.cached for score in scores)
        usage = Usage.total(score.usage for score in scores)
        log.info("%s: %d samples in %.2f s; %d cached; %s", self.source, len(scores), seconds, cached, usage.words)

    def describe(self, item: Item, sample: Sample) -> Record:
        """Return the server, the texts as they are embedded, and the options with where they come from."""
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
        """Return what is found for each text of the samples: its vector, or why it has none."""
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
    """A hash over all that determines a score beside the texts, None where the model is not known."""
    if not (about.identity or options.asked.model):
        return None
    what = [*options.asked, options.prefix, options.penalty, options.threshold]
    return digest((SOURCE, FLOW_VERSION, VERSION, about.identity, json.dumps(what)))
