"""Scorers that send batches of samples to a reward server (`POST /v1/score`).

`RemoteRule` scores with a reward function of the server. `Relay` scores with a judge, reward model or embedding server
that the reward server can reach, but this process cannot. `GET /v1/reward_types` lists the server's functions, each
with a fingerprint for cache keys and the fields of `extra_info` that it reads. No other fields leave the trainer.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from rewardstack.cache.key import ANY, CACHE_ENABLED, EVERY_FIELD, Key, Range, may_be_cached, read_fields, rule_key
from rewardstack.core.batching import BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import Fields, field_error, serialization_error
from rewardstack.core.imports import import_lock
from rewardstack.core.wire import SERVER_FIELD_ERROR, Record, is_server_field, read_scores, sample_record
from rewardstack.errors import (
    BudgetError,
    RejectedError,
    ReplyError,
    RequestError,
    SettingsError,
    UnknownSourceError,
)
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.routing.routes import RULE_OPTIONS, RULE_PREFIX
from rewardstack.score import Item, Score, Usage
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.settings import Settings
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.endpoint import Message
from rewardstack.transport.endpoint_pool import EndpointPool

if TYPE_CHECKING:
    from rewardstack.core.steps import Trace

BATCH = 64
"""Maximum number of samples in one request."""
PROBE = json.dumps({"items": []}).encode()
"""Body of a cheap request, sent first to an endpoint that has not accepted requests recently."""
TOO_LARGE = 413
COMMON_FIELDS = frozenset({"prompt", "problem", "question", "data_source"})
"""Fields that many functions read in place of one another; they are not compared with misspelled names."""
EXPLAIN = "/v1/explain"
"""API path that scores and explains one sample; older servers do not have it."""

P = TypeVar("P")

RUNS_NO_PROGRAMS = "CODE: programs are not run here"
"""Phrase in the error for a sample with a program, from a server with the setting CODE=off."""

log = logging.getLogger(__name__)


class RewardType(NamedTuple):
    """A server's description of a reward function.

    Args:
        fingerprint: hash of the function's source and of its libraries' versions, for cache keys.
        fields: the fields of `extra_info` that the function reads; `*` for all.
        range: valid range of its scores.
    """

    fingerprint: str
    fields: tuple[str, ...]
    range: Range


UNKNOWN = RewardType("", (EVERY_FIELD,), ANY)
"""Description of any function if the server does not list its functions: all fields are sent, no score is cached."""


class RewardServers:
    """A client of the reward servers; belongs to one event loop.

    Args:
        settings: the settings, with the environment's servers.
        find_service: returns the pool of endpoints for URLs and a key.
        types: cache of the functions of each server.
    """

    def __init__(self, settings: Settings, find_service: FindService, types: Discovery[Hashable, Any]) -> None:
        self._servers = reward_servers(settings)
        self.own = self._servers.own
        self.destination = self._servers.destination
        self.find = find_service
        self._types = types
        self._cached = settings.is_cache_enabled

    async def find_type(self, name: str, destination: Destination, context: Context) -> RewardType:
        """Return a server's description of a function; `UNKNOWN` if the server does not list its functions.

        Raises:
            DeadlineError: the server did not answer in time.
            UnknownSourceError: the server does not have the function; the error lists the functions that it has.
        """
        asked_at = time.monotonic()

        async def ask(deadline: SharedDeadline) -> Mapping[str, RewardType] | None:
            return await _reward_types(self.find(*destination), deadline)

        types = await self._types.find(destination, ask, context.deadline)
        if types is not None and name not in types and not self._types.has_answered_since(destination, asked_at):
            types = await self._types.refresh(destination, ask, context.deadline)
        if types is None:
            return UNKNOWN
        if name not in types:
            with import_lock:
                from rewardstack.core.misspellings import did_you_mean
            known = f"{did_you_mean(name, types)}it has: {', '.join(sorted(types))}"
            raise UnknownSourceError(f"the reward server has no {name!r}; {known}", "data_source")
        found: RewardType = types[name]
        return found

    async def score(
        self,
        source: str,
        destination: Destination,
        items: Sequence[Item],
        fields: Sequence[str],
        context: Context,
        *,
        is_group: bool = False,
    ) -> list[Score]:
        """Return one score for each item, in order; an item whose `extra_info` cannot be sent is unscored.

        Args:
            source: the `data_source` under which the server scores the items.
            destination: the server and the key.
            items: at most `BATCH` items, or a group.
            fields: fields of `extra_info` to send; `("*",)` for all.
            context: context of the batch. If it has a trace, the server is asked to explain the score.
            is_group: whether the items are a group, which must be scored in one request.

        Raises:
            DeadlineError, ReplyError: the server did not score the items.
            RejectedError: the server refuses the key or the items.
            UnknownSourceError: the server does not have the source.
            SettingsError: the items have programs, and the server does not run programs.
            BudgetError: the budget of the server's run is spent.
        """
        records = [self._record(source, item, fields) for item in items]
        sent = [one for one in records if isinstance(one, str)]
        try:
            scores = iter(await self._send(source, destination, sent, context, is_group) if sent else ())
        except RejectedError as error:
            raise self._servers.explained(error, destination) from error
        return [next(scores) if isinstance(one, str) else one for one in records]

    async def _send(
        self, source: str, destination: Destination, records: Sequence[str], context: Context, is_group: bool
    ) -> Sequence[Score]:
        service = self.find(*destination)
        if context.trace is not None:
            explained = await _explained(service, source, records[0], context.trace, context.deadline)
            if explained is not None:
                return explained
        return await _scores(service, source, records, context.deadline, is_group=is_group)

    def _record(self, source: str, item: Item, fields: Sequence[str]) -> str | Score:
        """Return the JSON of an item; an unscored score if a field of `extra_info` cannot be sent."""
        extra = read_fields(item, fields)
        if wrong := next(filter(is_server_field, extra), None):
            return _unsent(field_error(wrong, SERVER_FIELD_ERROR))
        if not self._cached or (CACHE_ENABLED in item.extra and not may_be_cached(item.extra)):
            extra[CACHE_ENABLED] = False
        try:
            return json.dumps(sample_record(source, item, extra))
        except (TypeError, ValueError):
            return _unsent(serialization_error(extra))


def _unsent(error: RequestError) -> Score:
    return Score.unscored(str(error), field=error.field)


def reward_servers(settings: Settings) -> Servers:
    """Return the environment's reward servers."""
    start = (
        "install rewardstack-rules to run rules in this process (`pip install ./services/rules`), or start a server "
        "with `make up` and `export REWARD_SERVER_URL=http://localhost:6000`"
    )
    if settings.endpoints:
        start = f"start a server with `make up`, and name it in {settings.endpoints}"
    return Servers("REWARD_SERVER_URL", settings.reward_server_urls, settings.reward_server_api_key, start)


class RemoteRule(Scorer[tuple[Item, Destination]]):
    """Scores with a reward function on a reward server.

    Args:
        name: the name of the reward function.
        timeout: seconds without progress after which a sample fails.
        servers: the reward servers.
    """

    def __init__(self, name: str, timeout: float, servers: RewardServers) -> None:
        self.source = f"rule:{name}"
        self.timeout = timeout
        self._name = name
        self._servers = servers

    def prepare(self, item: Item) -> tuple[Item, Destination]:
        """Return the item and the server that scores it; raise as `Servers.destination` does."""
        return item, self._servers.destination(item.extra)

    def batch(self, sample: tuple[Item, Destination]) -> BatchKey:
        """Return the batch key: samples for the same server share batches."""
        return BatchKey(BATCH, sample[1])

    async def keys(self, samples: Sequence[tuple[Item, Destination]], context: Context) -> list[Key | None]:
        """Return the cache keys, which the server computes identically; raise as `RewardServers.find_type` does."""
        keys: list[Key | None] = [None] * len(samples)
        groups: dict[Destination, list[int]] = {}
        for at, (_, destination) in enumerate(samples):
            groups.setdefault(destination, []).append(at)
        for destination, members in groups.items():
            about = await self._servers.find_type(self._name, destination, context)
            if about is not UNKNOWN:
                items = [samples[at][0] for at in members]
                self._warn_of_slips(about.fields, items)
                made = rule_key(self._name, about.fingerprint, about.fields, items, about.range)
                for at, key in zip(members, made, strict=True):
                    keys[at] = key
        return keys

    def _warn_of_slips(self, fields: tuple[str, ...], items: Sequence[Item]) -> None:
        """Warn about fields that are not sent because their names are most likely misspelled."""
        named = tuple(name for name in fields if name not in COMMON_FIELDS and name not in RULE_OPTIONS)
        if named and EVERY_FIELD not in fields:
            with import_lock:
                from rewardstack.core.misspellings import misspelling_hint
            for given in {tuple(item.extra) for item in items}:
                misspelling_hint(self._name, named, given)

    async def score(self, samples: Sequence[tuple[Item, Destination]], context: Context) -> list[Score]:
        """Return one score for each sample; raise as `RewardServers.score` does."""
        destination = samples[0][1]
        about = await self._servers.find_type(self._name, destination, context)
        items = [item for item, _ in samples]
        scores = await self._servers.score(RULE_PREFIX + self._name, destination, items, about.fields, context)
        for score in scores:
            score.source = self.source
        return scores

    def describe(self, item: Item, sample: tuple[Item, Destination]) -> Record:
        """Return the name of the function and the URLs of the servers."""
        return {"function": self._name, "asked": list(sample[1].urls)}


class Relayable(Scorer[P]):
    """A scorer whose samples a `Relay` can send to a reward server."""

    @abstractmethod
    def prepare(self, item: Item, destination: Destination | None = None) -> P | Score:
        """Prepare an item for `destination`; if that is None, for the item's server, else the environment's."""

    @abstractmethod
    def batch(self, sample: P) -> BatchKey:
        """Return the batch key of a sample."""

    @abstractmethod
    def estimate(self, samples: Sequence[P]) -> Usage:
        """Return the estimated usage of samples, without a request."""

    def portable(self, item: Item, sample: P) -> Item:
        """Return the item in the form to send to a reward server, with everything that the scorer reads."""
        return item


@dataclass(slots=True, eq=False)
class Relayed(Generic[P]):
    """A prepared sample of a `Relay`.

    Args:
        prepared: the sample as prepared by the relayed scorer.
        item: the item to send to the reward server; None if the sample names its own server.
    """

    prepared: P
    item: Item | None


class Relay(Scorer[Relayed[P]]):
    """Delegates a scorer's samples to a reward server, for a service whose URL the environment does not set.

    Samples that name their own server are scored directly. All other samples have no cache key here, because the reward
    server caches their scores.

    Args:
        scorer: the scorer that uses the service directly.
        source: `data_source` of the same scorer on the reward server.
        fields: fields of `extra_info` that the scorer reads, except server and timeout.
        servers: the reward servers.
        movable: whether samples may name their own server.
    """

    def __init__(
        self, scorer: Relayable[P], source: str, fields: Sequence[str], servers: RewardServers, *, movable: bool
    ) -> None:
        self.source, self.on_error, self.timeout = scorer.source, scorer.on_error, scorer.timeout
        self.fallback, self.report = scorer.fallback, scorer.report
        if (count := scorer.count_groups) is not None:
            self.count_groups = lambda samples: count([sample.prepared for sample in samples])
        self._scorer = scorer
        self._data_source = source
        self._fields = fields
        self._servers = servers
        self._movable = movable

    def prepare(self, item: Item) -> Relayed[P] | Score:
        """Return the prepared sample, with the item for the reward server unless the sample names its own server."""
        if self._movable and Fields(item.extra).get("server_url"):
            prepared = self._scorer.prepare(item)
            return prepared if isinstance(prepared, Score) else Relayed(prepared, None)
        prepared = self._scorer.prepare(item, self._servers.own)
        if isinstance(prepared, Score):
            return prepared
        sent = self._scorer.portable(item, prepared)
        if not may_be_cached(item.extra):
            sent = replace(sent, extra={**sent.extra, CACHE_ENABLED: False})
        return Relayed(prepared, sent)

    def batch(self, sample: Relayed[P]) -> BatchKey:
        """Return the scorer's batch key; larger batches for the reward server, which limits concurrency itself.

        A group, whose members a judge compares, is a request of its own.
        """
        key = self._scorer.batch(sample.prepared)
        if sample.item is None:
            return key
        if key.is_group:
            return key._replace(name=("relayed", key.name))
        return key._replace(size=BATCH, name=("relayed", key.name), max_in_flight=key.max_in_flight * BATCH)

    async def quote(self, samples: Sequence[Relayed[P]], context: Context) -> Usage:
        """Return the estimated usage, because only the reward server can access the service and its cache."""
        return self._scorer.estimate([sample.prepared for sample in samples])

    async def keys(self, samples: Sequence[Relayed[P]], context: Context) -> list[Key | None]:
        """Return keys for samples that name their own server, None for all others; raise as the scorer does."""
        own = [sample.prepared for sample in samples if sample.item is None]
        keys = iter(await self._scorer.keys(own, context) if own else ())
        return [next(keys) if sample.item is None else None for sample in samples]

    async def score(self, samples: Sequence[Relayed[P]], context: Context) -> list[Score]:
        """Return one score for each sample; raise as the scorer and `RewardServers.score` do."""
        items = [sample.item for sample in samples if sample.item is not None]
        if not items:
            return await self._scorer.score([sample.prepared for sample in samples], context)
        is_group = self._scorer.batch(samples[0].prepared).is_group
        own = self._servers.own
        return await self._servers.score(self._data_source, own, items, self._fields, context, is_group=is_group)

    def describe(self, item: Item, sample: Relayed[P]) -> Record:
        """Return what the scorer reports about the sample, and whether the reward server scores it."""
        facts = {} if sample.item is None else {"relayed": "the reward server scores this sample"}
        return {**facts, **self._scorer.describe(item, sample.prepared)}


async def _reward_types(service: EndpointPool, deadline: SharedDeadline) -> Mapping[str, RewardType] | None:
    message = Message("GET", "/v1/reward_types", read=_read_types, is_optional=True)
    try:
        types: Mapping[str, RewardType] = await service.ask(message, deadline)
        return types
    except (RejectedError, ReplyError) as error:
        log.warning("the reward server does not list its reward types, so its scores are not cached: %s", error)
        return None


def _read_types(data: bytes) -> Mapping[str, RewardType]:
    try:
        reply: Any = json.loads(data)
        return {
            name: RewardType(about["fingerprint"], tuple(about["fields"]), _range(*about.get("range", ANY)))
            for name, about in reply["reward_types"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplyError("not a list of reward types") from error


def _range(low: float | None, high: float | None) -> Range:
    """Return a range from the two ends in JSON, where None means unbounded."""
    return ANY[0] if low is None else float(low), ANY[1] if high is None else float(high)


async def _scores(
    service: EndpointPool, source: str, records: Sequence[str], deadline: SharedDeadline, *, is_group: bool = False
) -> Sequence[Score]:
    """Return one score for each record; if the request is too large for the server, send its halves, unless a group."""
    body = f'{{"items": [{", ".join(records)}]}}'.encode()
    read = partial(_read_scores, source, len(records))
    message = Message("POST", "/v1/score", body, read=read, probe=PROBE, is_hedged=True)
    try:
        scores: Sequence[Score] = await service.ask(message, deadline)
        return scores
    except RejectedError as error:
        if error.status == 404:
            raise UnknownSourceError(str(error), "data_source") from error
        if error.status == 503:
            raise BudgetError(str(error)) from error
        if error.status == 400 and RUNS_NO_PROGRAMS in str(error):
            raise SettingsError(str(error), "CODE") from error
        if error.status != TOO_LARGE:
            raise
        if len(records) == 1 or is_group:
            what = f"a group of {len(records)} samples" if is_group else "a sample"
            reason = f"{what} of {len(body):,} bytes is too large for the server: {error}"
            return [Score.failed(reason, source) for _ in records]
    sums = [*accumulate(map(len, records))]
    middle = min(max(1, bisect_left(sums, sums[-1] / 2)), len(records) - 1)
    halves = records[:middle], records[middle:]
    parts = await asyncio.gather(*(_scores(service, source, half, deadline) for half in halves))
    return [*parts[0], *parts[1]]


def _read_scores(source: str, count: int, reply: bytes) -> Sequence[Score]:
    try:
        scores = read_scores(json.loads(reply)["scores"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReplyError(f"{source}: the server's reply is not a list of scores") from error
    if len(scores) != count:
        raise ReplyError(f"{source}: got {len(scores)} scores for {count} samples")
    return scores


async def _explained(
    service: EndpointPool, source: str, record: str, trace: Trace, deadline: SharedDeadline
) -> Sequence[Score] | None:
    """Return a sample's score with the server's explanation, whose steps are added to `trace`; None if unsupported."""
    with import_lock:
        from rewardstack.core.steps import read_steps
    body = f'{record[:-1]}, "rescore": {json.dumps(trace.rescore)}}}'.encode()
    try:
        reply = json.loads(await service.ask(Message("POST", EXPLAIN, body, is_optional=True), deadline))
        steps, error = read_steps(reply["steps"]), str(reply["error"])
        scores = None if error else read_scores([reply["score"]])
    except RejectedError as refusal:
        if refusal.status not in (404, 405):
            raise
        trace.note("the reward server", {"note": f"explanations are not supported ({refusal}); scored without"})
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReplyError(f"{source}: the server's reply to {EXPLAIN} is not an explanation") from None
    trace.take()  # discard the recorded HTTP exchange, because the steps in the reply replace it
    trace.note("the reward server", {"error": error} if error else {}, steps)
    return scores
