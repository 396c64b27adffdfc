"""Reward functions on a reward server: `POST /v1/score`, in batches.

`GET /v1/reward_types` tells each function's fingerprint and the fields of `extra_info` that it reads: the key of the
cache is made of the former, and nothing but the latter leaves the trainer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rewardstack.cache.key import EVERY_FIELD, rule_key
from rewardstack.core.coalescing import Lane
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.pipeline.scorer import Scorer
from rewardstack.routing.routes import RULE_PREFIX
from rewardstack.score import Item, OnError, Score
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.scorers.reward_server.calls import BATCH, post_samples, reward_servers
from rewardstack.scorers.reward_server.reward_types import RewardType, RewardTypes
from rewardstack.settings import Settings
from rewardstack.transport.endpoint_pool import EndpointPool


class RemoteSample(NamedTuple):
    """A sample for a reward server.

    Args:
        item: the sample.
        destination: the server.
        service: by which it is asked.
    """

    item: Item
    destination: Destination
    service: EndpointPool


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
        """The same keys as the server's own, by the fingerprint that it gives; raises as `score` does."""
        keys: dict[Destination, Iterator[Key | None]] = {}
        for destination, first in {sample.destination: sample for sample in prepared}.items():
            about = await self._about(first, deadline)
            items = [sample.item for sample in prepared if sample.destination == destination]
            made: list[Key | None] = [None] * len(items)
            if about is not None:
                made = rule_key(self._name, about.fingerprint, about.fields, items, about.range)
            keys[destination] = iter(made)
        return [next(keys[sample.destination]) for sample in prepared]

    async def score(self, prepared: Sequence[RemoteSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order.

        Raises:
            DeadlineError, ReplyError: the server did not score them.
            UnknownSourceError: it has no such function; lists those it has.
            SettingsError: it does not take the key.
        """
        about = await self._about(prepared[0], deadline)
        fields = about.fields if about else (EVERY_FIELD,)
        items = [sample.item for sample in prepared]
        scores = await post_samples(prepared[0].service, self._data_source, items, fields, deadline)
        for score in scores:
            score.source = self.source
        return scores

    async def _about(self, sample: RemoteSample, deadline: SharedDeadline) -> RewardType | None:
        return await self._types.find(self._name, sample.destination, sample.service, deadline)
