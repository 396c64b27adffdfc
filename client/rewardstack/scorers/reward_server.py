"""Score batches of samples on a reward server (`POST /v1/score`).

`RemoteRule` scores with a reward function of the server. `GET /v1/reward_types` describes each function: its
fingerprint (for cache keys), its range, and the fields of `extra_info` that it reads. Only these fields are sent.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from rewardstack.cache.key import ANY, CACHE_ENABLED, EVERY_FIELD, Key, Range, may_be_cached, read_fields, rule_key
from rewardstack.cause import Cause
from rewardstack.core.batching import BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import field_error, serialization_error
from rewardstack.core.imports import import_lock
from rewardstack.core.messages import WHOLE_RESPONSE
from rewardstack.core.wire import SERVER_FIELD_ERROR, Record, is_server_field, read_scores, sample_record
from rewardstack.errors import (
    BudgetError,
    RejectedError,
    ReplyError,
    RewardstackError,
    ServiceError,
    SettingsError,
    UnknownSourceError,
)
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.routing.routes import RULE_OPTIONS, RULE_PREFIX
from rewardstack.score import Item, Score
from rewardstack.scorers.destination import KEY_REFUSED, Destination, FindPool, Servers
from rewardstack.settings import Settings
from rewardstack.transport import servers as transport
from rewardstack.transport.discovery import Discovery, optional_wait
from rewardstack.transport.message import PATH_FIELD, Message

if TYPE_CHECKING:
    from rewardstack.core.steps import Trace

BATCH = 64
"""Maximum number of samples in one request."""
PROBE = json.dumps({"items": []}).encode()
"""Body of a cheap request that tests an endpoint before real requests are sent to it."""
TOO_LARGE = 413
COMMON_FIELDS = frozenset({"prompt", "problem", "question", "messages", "data_source", WHOLE_RESPONSE})
"""Fields that many functions read, but that samples often lack. If one is missing, no other field is taken for a
misspelling of it."""
SETTING = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
"""Matches the name of a setting in the `field` of a server's error."""
EXPLAIN = "/v1/explain"
"""API path that scores and explains one sample; older servers do not have it."""

log = logging.getLogger(__name__)


class RewardType(NamedTuple):
    """A server's description of a reward function.

    Args:
        fingerprint: hash of the function's source and of its libraries' versions, for cache keys.
        fields: the fields of `extra_info` that the function reads; `*` for all.
        range: valid range of the function's scores.
    """

    fingerprint: str
    fields: tuple[str, ...]
    range: Range


UNKNOWN = RewardType("", (EVERY_FIELD,), ANY)
"""Description of a function if the server does not list its functions: all fields are sent, no score is cached."""


class RewardServers:
    """A client of the reward servers; belongs to one event loop.

    Args:
        settings: the settings, with the environment's servers.
        find_pool: returns the pool of endpoints for URLs and a key.
        reward_types: cache of each server's function descriptions, which are fetched on first use.
    """

    def __init__(self, settings: Settings, find_pool: FindPool, reward_types: Discovery[Hashable, Any]) -> None:
        self._servers = reward_servers(settings)
        self.default = self._servers.default
        self.destination = self._servers.destination
        self.find = find_pool
        self._reward_types_cache = reward_types
        self._is_cache_on = settings.is_cache_enabled

    async def get_reward_type(
        self, name: str, destination: Destination, context: Context, wait: float = math.inf
    ) -> RewardType:
        """Return a server's description of a function; `UNKNOWN` if the server does not list its functions.

        Args:
            name: the function's name.
            destination: the server.
            context: the deadline.
            wait: maximum seconds to wait if no earlier answer is cached.

        Raises:
            DeadlineError: the server did not answer in time.
            UnknownSourceError: the server does not have the function; the error lists the server's functions.
        """
        started_at = time.monotonic()

        async def ask(deadline: SharedDeadline) -> Mapping[str, RewardType] | None:
            return await _list_reward_types(self.find(*destination), deadline)

        reward_types = await self._reward_types_cache.find(destination, ask, context.deadline, wait)
        is_unknown = reward_types is not None and name not in reward_types
        if is_unknown and not self._reward_types_cache.has_answered_since(destination, started_at):
            # The server may have restarted with this function since it last answered.
            reward_types = await self._reward_types_cache.refresh(destination, ask, context.deadline)
        if reward_types is None:
            return UNKNOWN
        if name not in reward_types:
            with import_lock:
                from rewardstack.core.misspellings import did_you_mean
            known = f"{did_you_mean(name, reward_types)}it has: {', '.join(sorted(reward_types))}"
            raise UnknownSourceError(f"the reward server has no {name!r}; {known}", "data_source")
        reward_type: RewardType = reward_types[name]
        return reward_type

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
            context: context of the batch. With a trace, there is only one item, and the server also explains its score.
            is_group: whether the items are a group, which must be scored in one request.

        Raises:
            DeadlineError, ReplyError: the server did not score the items.
            RejectedError: the server refuses the key or the items, or does not have the path `/v1/score`.
            UnknownSourceError: the server does not have the source.
            SettingsError: the URL is wrong, or the server lacks a setting, e.g. the URL of a judge.
            BudgetError: the server has used up the budget of its run.
        """
        uncached = {} if self._is_cache_on else {CACHE_ENABLED: False}
        records = [encode_item(source, item, fields, uncached) for item in items]
        sendable = [one for one in records if isinstance(one, str)]
        try:
            scores = iter(
                await self._score_records(source, destination, sendable, context, is_group) if sendable else ()
            )
        except RejectedError as error:
            if error.status == 404:
                raise self._not_found_error(error, destination) from error
            raise self._servers.with_key_hint(error, destination) from error
        return [next(scores) if isinstance(one, str) else one for one in records]

    def _not_found_error(self, error: RejectedError, destination: Destination) -> RewardstackError:
        """Return the error about a 404: the URL is wrong, or the server does not have the source."""
        has_path = any(urlsplit(url).path for url in destination.urls)
        if error.field == PATH_FIELD or (error.is_misplaced and has_path):
            return self._servers.wrong_url_error(error, destination)
        if error.is_misplaced:  # not a reward server, or a proxy that forwards only some paths
            return RejectedError(
                str(self._servers.wrong_url_error(error, destination)), error.status, cause=error.cause
            )
        return UnknownSourceError(str(error), "data_source")

    async def _score_records(
        self, source: str, destination: Destination, records: Sequence[str], context: Context, is_group: bool
    ) -> Sequence[Score]:
        pool = self.find(*destination)
        if context.trace is not None:
            scores = await _explain(pool, source, records[0], context.trace, context.deadline)
            if scores is not None:
                return scores
        return await _request_scores(pool, source, records, context.deadline, is_group=is_group)


def encode_item(source: str, item: Item, fields: Sequence[str], options: Mapping[str, Any]) -> str | Score:
    """Return the JSON of an item; an unscored score if a field of `extra_info` cannot be sent.

    Args:
        source: the `data_source` to send.
        item: the item.
        fields: the fields to send, as in `read_fields`.
        options: further fields of `extra_info`.
    """
    extra = read_fields(item, fields)
    whole = extra.pop(WHOLE_RESPONSE, None) if WHOLE_RESPONSE in fields else None
    if forbidden_field := next(filter(is_server_field, extra), None):
        return field_error(forbidden_field, SERVER_FIELD_ERROR).as_score()
    extra |= options
    if CACHE_ENABLED in item.extra and not may_be_cached(item.extra):
        extra[CACHE_ENABLED] = False
    try:
        return json.dumps(sample_record(source, item, extra, whole))
    except (TypeError, ValueError):
        return serialization_error({**extra, WHOLE_RESPONSE: whole}).as_score()


def reward_servers(settings: Settings) -> Servers:
    """Return the environment's reward servers."""
    start = (
        "install rewardstack-rules to run rules in this process (`pip install ./services/rules`), or start a server "
        "with `make up`, then `export REWARD_SERVER_URL=http://localhost:6000`"
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
        """Return a cache key for each sample, or None for a sample that cannot be cached here.

        A sample gets None if its server did not describe the function, or if a field is not JSON serializable. If one
        of several servers fails, its samples get None, too; if the only server fails, its error is raised.
        The server also caches scores, under the same keys, so samples that get None here may be cached there.

        Raises:
            ServiceError, ConfigError: see `RewardServers.get_reward_type`.
        """
        keys: list[Key | None] = [None] * len(samples)
        by_destination: dict[Destination, list[int]] = {}
        for index, (_, destination) in enumerate(samples):
            by_destination.setdefault(destination, []).append(index)
        for destination, reward_type in (await self._find_reward_types([*by_destination], context)).items():
            indices = by_destination[destination]
            if reward_type is not UNKNOWN:
                items = [samples[index][0] for index in indices]
                self._warn_of_misspelled_fields(reward_type.fields, items)
                group_keys = rule_key(self._name, reward_type.fingerprint, reward_type.fields, items, reward_type.range)
                for index, key in zip(indices, group_keys, strict=True):
                    keys[index] = key
        return keys

    async def _find_reward_types(
        self, destinations: Sequence[Destination], context: Context
    ) -> dict[Destination, RewardType]:
        """Return each server's description of the function; if there are several servers, leave out those that fail."""
        is_one = len(destinations) == 1
        # A server that is down does not delay the samples of the others.
        wait = math.inf if is_one else optional_wait(context.deadline)
        requests = (self._servers.get_reward_type(self._name, one, context, wait) for one in destinations)
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        for one in outcomes:
            if isinstance(one, BaseException) and (is_one or not isinstance(one, ServiceError)):
                raise one
        found = zip(destinations, outcomes, strict=True)
        return {destination: one for destination, one in found if not isinstance(one, BaseException)}

    def _warn_of_misspelled_fields(self, fields: tuple[str, ...], items: Sequence[Item]) -> None:
        """Warn about fields that are not sent and whose names are probably misspelled."""
        named = tuple(name for name in fields if name not in COMMON_FIELDS and name not in RULE_OPTIONS)
        if named and EVERY_FIELD not in fields:
            with import_lock:
                from rewardstack.core.misspellings import misspelling_hint
            for present in {tuple(item.extra) for item in items}:
                misspelling_hint(self._name, named, present)

    async def score(self, samples: Sequence[tuple[Item, Destination]], context: Context) -> list[Score]:
        """Return one score for each sample; raise as `RewardServers.score` does."""
        destination = samples[0][1]
        reward_type = await self._servers.get_reward_type(self._name, destination, context)
        items = [item for item, _ in samples]
        scores = await self._servers.score(RULE_PREFIX + self._name, destination, items, reward_type.fields, context)
        for score in scores:
            score.source = self.source
        return scores

    def describe(self, item: Item, sample: tuple[Item, Destination]) -> Record:
        """Return the name of the function and the URLs of the servers."""
        return {"function": self._name, "servers": list(sample[1].urls)}


async def _list_reward_types(pool: transport.Servers, deadline: SharedDeadline) -> Mapping[str, RewardType] | None:
    message = Message("GET", "/v1/reward_types", read=_parse_reward_types, is_optional=True)
    try:
        reward_types: Mapping[str, RewardType] = await pool.ask(message, deadline)
        return reward_types
    except (RejectedError, ReplyError) as error:
        if not isinstance(error, RejectedError) or error.status not in KEY_REFUSED:  # samples fail for it, too
            log.warning("the reward server does not list its reward types, so its scores are not cached: %s", error)
        return None


def _parse_reward_types(data: bytes) -> Mapping[str, RewardType]:
    try:
        reply: Any = json.loads(data)
        return {
            name: RewardType(about["fingerprint"], tuple(about["fields"]), _parse_range(*about.get("range", ANY)))
            for name, about in reply["reward_types"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplyError("not a list of reward types") from error


def _parse_range(low: float | None, high: float | None) -> Range:
    """Return the range between two bounds; None means unbounded."""
    return ANY[0] if low is None else float(low), ANY[1] if high is None else float(high)


async def _request_scores(
    pool: transport.Servers, source: str, records: Sequence[str], deadline: SharedDeadline, *, is_group: bool = False
) -> Sequence[Score]:
    """Return one score for each record; split a request that is too large for the server, unless it is a group."""
    body = f'{{"items": [{", ".join(records)}]}}'.encode()
    read = partial(_parse_scores, source, len(records))
    message = Message("POST", "/v1/score", body, read=read, probe=PROBE, is_hedged=True)
    try:
        scores: Sequence[Score] = await pool.ask(message, deadline)
        return scores
    except RejectedError as error:
        if error.status == 503:
            raise BudgetError(str(error)) from error
        if error.status == 400 and SETTING.fullmatch(error.field):
            raise SettingsError(f"{error} (a setting of the reward server)", error.field) from error
        if error.status != TOO_LARGE:
            raise
        if len(records) == 1 or is_group:
            what = f"a group of {len(records)} samples" if is_group else "a sample"
            reason = f"{what} ({len(body):,} bytes) is too large for the server: {error}"
            return [Score.failed(reason, source, Cause.TOO_LONG) for _ in records]
    sums = [*accumulate(map(len, records))]
    middle = min(max(1, bisect_left(sums, sums[-1] / 2)), len(records) - 1)
    halves = records[:middle], records[middle:]
    parts = await asyncio.gather(*(_request_scores(pool, source, half, deadline) for half in halves))
    return [*parts[0], *parts[1]]


def _parse_scores(source: str, count: int, reply: bytes) -> Sequence[Score]:
    try:
        scores = read_scores(json.loads(reply)["scores"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReplyError(f"{source}: the server's reply is not a list of scores") from error
    if len(scores) != count:
        raise ReplyError(f"{source}: got {len(scores)} scores for {count} samples")
    return scores


async def _explain(
    pool: transport.Servers, source: str, record: str, trace: Trace, deadline: SharedDeadline
) -> Sequence[Score] | None:
    """Return a sample's score and add the steps of its explanation to `trace`.

    Return None if the server does not support explanations, or if its explanation reports an error instead of a score.
    The caller then requests only the score; if the explanation reports an error, that request raises it.
    """
    with import_lock:
        from rewardstack.core.steps import read_steps
    body = f'{record[:-1]}, "rescore": {json.dumps(trace.rescore)}}}'.encode()
    try:
        reply = json.loads(await pool.ask(Message("POST", EXPLAIN, body, is_optional=True), deadline))
        steps, error = read_steps(reply["steps"]), str(reply["error"])
        scores = None if error else read_scores([reply["score"]])
    except RejectedError as refusal:
        if refusal.status not in (404, 405):
            raise
        trace.note("the reward server", {"note": f"explanations are not supported ({refusal}); scored without one"})
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReplyError(f"{source}: the server's reply to {EXPLAIN} is not an explanation") from None
    trace.take()  # discard the recorded HTTP exchange, because the steps in the reply replace it
    trace.note("the reward server", {"error": error} if error else {}, steps)
    return scores
