"""The scorer: a candidate's similarity to its best reference, less what the difference in length costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardstack.cache.key import FLOW_VERSION, PREFIX, digest, extended
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import UNIT, Key
from rewardstack.errors import ConfigError
from rewardstack.score import Item, OnError, Score
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.scorers.embedding.options import Asked, Options
from rewardstack.scorers.embedding.protocol import About
from rewardstack.scorers.embedding.sample import SOURCE, Sample, lexical_score, read_sample, vector_scores
from rewardstack.scorers.embedding.server import Server
from rewardstack.scorers.embedding.vectors import Embedder, VectorStore
from rewardstack.settings import Settings

VERSION = "1"
"""Raised whenever the same texts come to another score."""
BATCH = 4096
"""Samples whose texts are put together; requests to the server are as large as it takes."""
EMBEDDERS = 64
"""Kept at a time: whoever may ask a reward server may make up models and prompts without end."""


class Part(NamedTuple):
    """Samples whose texts are embedded together.

    Args:
        destination: the server.
        asked: of it.
        cached: whether vectors are kept.
    """

    destination: Destination
    asked: Asked
    cached: bool


class Embedding:
    """Similarity by an embedding server.

    Args:
        settings: the servers, their key, how long to wait.
        find_service: opens connections.
        store: of vectors.
        tenant: whose vectors they are.
    """

    source = SOURCE
    on_error: OnError = "lexical"
    batch_size = BATCH

    def __init__(self, settings: Settings, find_service: FindService, store: VectorStore, tenant: str) -> None:
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
        self._servers: dict[Destination, Server] = {}
        self._embedders: dict[tuple[Destination, About, Asked], Embedder] = {}

    def at_once(self, item: Item) -> Score | None:
        """The score of a sample that needs no server: an option is malformed, or one side is empty."""
        read = read_sample(item)
        return read if isinstance(read, Score) else None

    def fallback(self, item: Item) -> Score:
        """The similarity by characters of a sample that no server scored."""
        read = read_sample(item)
        return read if isinstance(read, Score) else lexical_score(read)

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """The items' keys, the server's model being part of them; raises as `score` does."""
        keys: list[Key | None] = [None] * len(items)
        states: dict[tuple[Destination, Options], Any] = {}
        for at, item in enumerate(items):
            read = read_sample(item)
            if isinstance(read, Score) or not read.options.cached:
                continue
            which = self._destinations.destination(item.extra), read.options
            if which not in states:
                states[which] = _state(await self._server(which[0]).about(deadline), read.options)
            if states[which] is not None:
                keys[at] = Key(PREFIX + extended(states[which], read.solution, *read.references), range=UNIT)
        return keys

    async def score(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        """One score for each item, in order.

        Raises:
            DeadlineError, ReplyError: the server did not say what it is.
            SettingsError: no server is set, or it does not take the key.
        """
        scores: dict[int, Score] = {}
        parts: dict[Part, dict[int, Sample]] = {}
        for at, item in enumerate(items):
            read = read_sample(item)
            if isinstance(read, Score):
                scores[at] = read
                continue
            part = Part(self._destinations.destination(item.extra), read.options.asked, read.options.cached)
            parts.setdefault(part, {})[at] = read
        calls = [self._score_part(part, list(members.values()), deadline) for part, members in parts.items()]
        for members, found in zip(parts.values(), await asyncio.gather(*calls), strict=True):
            scores.update(zip(members, found, strict=True))
        return [scores[at] for at in range(len(items))]

    async def _score_part(self, part: Part, samples: Sequence[Sample], deadline: SharedDeadline) -> list[Score]:
        if part.cached:
            self._store.memory.resize(max(sample.options.cache_size for sample in samples))
        embedder = self._embedder(part, await self._server(part.destination).about(deadline))
        texts = {text for sample in samples for text in (sample.candidate, *sample.targets)}
        found = await embedder.vectors(texts, deadline, cached=part.cached)
        for one in found.values():
            if isinstance(one, ConfigError):
                raise one
        return vector_scores(samples, found)

    def _server(self, destination: Destination) -> Server:
        if destination not in self._servers:
            self._servers[destination] = Server(self._find(*destination))
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
