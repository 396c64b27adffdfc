"""Reward functions on a reward server: `POST /v1/score`, in batches.

`GET /v1/reward_types` tells each function's fingerprint and the fields of `extra_info` that it reads: the key of the
cache is made of the former, and nothing but the latter leaves the trainer.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from rewardstack.cache.key import CACHE_ENABLED, EVERY_FIELD, may_be_cached, read_fields, rule_key
from rewardstack.core.coalescing import Lane
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import OPTIONS, field_error
from rewardstack.core.keys import Key
from rewardstack.core.steps import Trace, read_steps
from rewardstack.core.wire import NOT_TAKEN, Record, is_servers_own, read_scores, sample_record
from rewardstack.errors import BudgetError, RejectedError, ReplyError, RequestError, UnknownSourceError
from rewardstack.pipeline.scorer import Scorer
from rewardstack.routing.routes import RULE_PREFIX
from rewardstack.score import Item, OnError, Score
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.scorers.reward_server.reward_types import RewardTypes
from rewardstack.settings import Settings
from rewardstack.transport.endpoint_pool import EndpointPool
from rewardstack.transport.reply import Read

BATCH = 64
"""Samples in one request."""

PROBE = json.dumps({"items": []}).encode()
TOO_LARGE = 413
EXPLAIN = "/v1/explain"
"""Explains one sample; older servers do not have it."""


@dataclass(slots=True)
class RemoteSample:
    """A sample for a reward server.

    Args:
        item: the sample.
        destination: the server.
        service: by which it is asked.
        fields: of `extra_info` that the function reads, `("*",)` for all; None until the sample was asked for its key.
    """

    item: Item
    destination: Destination
    service: EndpointPool
    fields: Sequence[str] | None = None


class RemoteRule(Scorer[RemoteSample]):
    """One reward function, on a reward server.

    Args:
        name: of the function.
        settings: the servers, their key, how long to wait.
        find_service: opens connections.
        types: what the servers said of their functions.
    """

    on_error: OnError = "zero"

    def __init__(self, name: str, settings: Settings, find_service: FindService, types: RewardTypes) -> None:
        self.source = f"rule:{name}"
        self.timeout = settings.reward_server_timeout
        self._name = name
        self._data_source = RULE_PREFIX + name
        self._servers = reward_servers(settings)
        self._find = find_service
        self._types = types
        self._cached = settings.cache_on

    def prepare(self, item: Item) -> RemoteSample:
        """The sample, and where it is scored.

        Raises:
            SettingsError: no server is set.
            RequestError: the sample names its own wrongly.
        """
        destination = self._servers.destination(item.extra)
        return RemoteSample(item, destination, self._find(*destination))

    def lane(self, sample: RemoteSample) -> Lane:
        """Samples of one server travel together."""
        return Lane(BATCH, sample.destination)

    async def keys(self, prepared: Sequence[RemoteSample], deadline: SharedDeadline) -> list[Key | None]:
        """The same keys as the server's own, by the fingerprint that it gives.

        Raises:
            DeadlineError: the server did not say what it has.
            UnknownSourceError: it has no such function; lists those it has.
        """
        keys: list[Key | None] = [None] * len(prepared)
        groups: dict[Destination, list[int]] = {}
        for at, sample in enumerate(prepared):
            groups.setdefault(sample.destination, []).append(at)
        for members in groups.values():
            first = prepared[members[0]]
            about = await self._types.find(self._name, first.destination, first.service, deadline)
            for at in members:
                prepared[at].fields = (EVERY_FIELD,) if about is None else about.fields
            if about is not None:
                items = [prepared[at].item for at in members]
                made = rule_key(self._name, about.fingerprint, about.fields, items, about.range)
                for at, key in zip(members, made, strict=True):
                    keys[at] = key
        return keys

    async def score(self, prepared: Sequence[RemoteSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order.

        Raises:
            DeadlineError, ReplyError: the server did not score them.
            RefusedKeyError: it does not take the key.
            UnknownSourceError: it has no such function.
        """
        if any(sample.fields is None for sample in prepared):
            await self.keys(prepared, deadline)
        samples = [(sample.item, sample.fields or ()) for sample in prepared]
        destination, service = prepared[0].destination, prepared[0].service
        try:
            scores = await post_samples(service, self._data_source, samples, deadline, self._cached)
        except RejectedError as error:
            raise self._servers.explained(error, destination) from error
        for score in scores:
            score.source = self.source
        return scores

    def describe(self, item: Item, prepared: RemoteSample) -> Record:
        """The function, and the servers that have it."""
        return {"function": self._name, "asked": list(prepared.destination.urls)}

    async def explain(self, prepared: RemoteSample, deadline: SharedDeadline, trace: Trace) -> Score:
        """The score, with the steps of the reward server noted; raises as `score` does."""
        if prepared.fields is None:
            await self.keys([prepared], deadline)
        sample = prepared.item, prepared.fields or ()
        score = await explain_sample(prepared.service, self._data_source, sample, deadline, self._cached, trace)
        return await super().explain(prepared, deadline, trace) if score is None else replace(score, source=self.source)


def reward_servers(settings: Settings) -> Servers:
    """The reward servers that the environment names."""
    return Servers(
        "REWARD_SERVER_URL",
        settings.reward_server_urls,
        settings.reward_server_api_key,
        "start a server with `make up` and `export REWARD_SERVER_URL=http://localhost:6000`",
    )


async def post_samples(
    service: EndpointPool,
    data_source: str,
    samples: Sequence[tuple[Item, Sequence[str]]],
    deadline: SharedDeadline,
    cached: bool,
) -> list[Score]:
    """One score for each sample, in order, as a reward server gives them.

    Args:
        service: of the server.
        data_source: by which the server shall score them.
        samples: at most `BATCH` of them, with the fields of `extra_info` that are sent; `("*",)` for all.
        deadline: of all who wait.
        cached: whether the server may read scores from its cache, and keep them.

    Returns:
        Unscored, and not sent, is a sample whose `extra_info` holds what cannot be.

    Raises:
        DeadlineError, ReplyError: the server did not score them.
        RejectedError: it does not take the key, or not these samples.
        UnknownSourceError: it has no such source; lists those it has.
        BudgetError: the server's run may ask its judge or embedding server no more.
    """
    written: list[str | Score] = []
    for item, fields in samples:
        try:
            written.append(_record(data_source, item, fields, cached))
        except RequestError as error:
            written.append(Score.unscored(str(error), field=error.field))
    sent = [one for one in written if isinstance(one, str)]
    scores = iter(await _scores_of(service, data_source, sent, deadline) if sent else ())
    return [next(scores) if isinstance(one, str) else one for one in written]


async def _scores_of(
    service: EndpointPool, data_source: str, records: Sequence[str], deadline: SharedDeadline
) -> list[Score]:
    """Return one score for each record; a request that is too large is sent in two."""

    def read(reply: bytes) -> list[Score]:
        try:
            scores = read_scores(json.loads(reply)["scores"])
        except (ValueError, KeyError, TypeError) as error:
            raise ReplyError(f"{data_source}: the server's reply is no list of scores") from error
        if len(scores) != len(records):
            raise ReplyError(f"{data_source}: {len(scores)} scores came for {len(records)} samples")
        return scores

    body = f'{{"items": [{", ".join(records)}]}}'.encode()
    try:
        return await _post(service, body, deadline, read)
    except RejectedError as error:
        if error.status != TOO_LARGE:
            raise
        if len(records) == 1:
            return [Score.failed(f"one sample of {len(body):,} bytes is more than the server takes: {error}")]
    sums = [*accumulate(map(len, records))]
    middle = min(max(1, bisect_left(sums, sums[-1] / 2)), len(records) - 1)
    halves = records[:middle], records[middle:]
    parts = await asyncio.gather(*(_scores_of(service, data_source, half, deadline) for half in halves))
    return [*parts[0], *parts[1]]


def _record(data_source: str, item: Item, fields: Sequence[str], cached: bool, **beside: bool) -> str:
    """What is sent of a sample, as JSON, and what is said beside it.

    Raises:
        RequestError: a field of `extra_info` cannot be sent; names it.
    """
    extra = read_fields(item.extra, fields)
    if wrong := next(filter(is_servers_own, extra), None):
        raise field_error(wrong, NOT_TAKEN)
    if not (cached and may_be_cached(item.extra)):
        extra[CACHE_ENABLED] = False
    try:
        return json.dumps({**sample_record(data_source, item, extra), **beside})
    except (TypeError, ValueError):
        raise _unwritable(extra) from None


def _unwritable(extra: Mapping[str, Any]) -> RequestError:
    """What is raised of fields of which one cannot be written as JSON."""
    for name, value in extra.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            return field_error(name, f"{error}; it must hold what JSON can")
    return RequestError("extra_info: it must hold what JSON can", OPTIONS)


async def explain_sample(
    service: EndpointPool,
    data_source: str,
    sample: tuple[Item, Sequence[str]],
    deadline: SharedDeadline,
    cached: bool,
    trace: Trace,
) -> Score | None:
    """A sample's score as a reward server explains it, its steps noted; None where the server does not explain.

    Args:
        service: of the server.
        data_source: by which the server shall score it.
        sample: with the fields of `extra_info` that are sent; `("*",)` for all.
        deadline: of all who wait.
        cached: whether the server may read the score from its cache.
        trace: where the server's steps are noted; its `anew` is said to the server.

    Raises:
        ServiceError: the server did not answer.
        RequestError: `extra_info` holds what cannot be sent.
    """
    body = _record(data_source, *sample, cached, anew=trace.anew).encode()
    try:
        reply = json.loads(await service.post(EXPLAIN, body, deadline, is_optional=True))
        steps, error = read_steps(reply["steps"]), str(reply["error"])
        score = None if error else read_scores([reply["score"]])[0]
    except RejectedError as refusal:
        if refusal.status not in (404, 405):
            raise
        trace.note("the reward server", {"note": f"it does not explain ({refusal}); it is asked for the plain score"})
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ReplyError(f"{data_source}: the server's reply to {EXPLAIN} is no explanation") from None
    trace.take()  # the exchange itself, whose steps follow
    trace.note("the reward server", {"error": error} if error else {}, steps)
    return score


async def _post(service: EndpointPool, body: bytes, deadline: SharedDeadline, read: Read) -> list[Score]:
    try:
        scores: list[Score] = await service.post("/v1/score", body, deadline, PROBE, hedged=True, read=read)
        return scores
    except RejectedError as error:
        if error.status == 404:
            raise UnknownSourceError(str(error), "data_source") from error
        if error.status == 503:
            raise BudgetError(str(error)) from error
        raise
