"""Send samples to a reward server if this process does not know the URL of the judge or model that scores them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rewardstack.cache.key import CACHE_ENABLED, Key, may_be_cached
from rewardstack.core.batching import BatchKey
from rewardstack.core.fields import Fields
from rewardstack.core.wire import Record
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.score import Item, Score, Usage
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.reward_server import BATCH, RewardServers

P = TypeVar("P")


class Relayable(Scorer[P]):
    """A scorer whose samples a `Relay` can send to a reward server."""

    @abstractmethod
    def prepare(self, item: Item, destination: Destination | None = None) -> P | Score:
        """Return the prepared sample of an item, or its score if no service is needed.

        Args:
            item: the item.
            destination: the server that scores the item. If None, it is the server that the item names, or else the
                configured server.
        """

    @abstractmethod
    def batch(self, sample: P) -> BatchKey:
        """Return the batch key of a sample."""

    @abstractmethod
    def estimate(self, samples: Sequence[P]) -> Usage:
        """Return the estimated usage of samples, without a request."""

    def portable(self, item: Item, sample: P) -> Item:
        """Return the item to send to a reward server, with all fields that the scorer reads."""
        return item


@dataclass(slots=True, eq=False)
class RelayedSample(Generic[P]):
    """A prepared sample of a `Relay`.

    Args:
        prepared: the sample as prepared by the relayed scorer.
        item: the item to send to the reward server; None if the sample names its own server.
    """

    prepared: P
    item: Item | None


class Relay(Scorer[RelayedSample[P]]):
    """Sends a scorer's samples to a reward server, because this process has no URL of the scorer's service.

    A sample can name its own server, such as a judge, in `server_url`; the scorer then uses that server directly. All
    other samples have no cache key here, because the reward server caches their scores.

    Args:
        scorer: the scorer that uses the service directly.
        source: the `data_source` to send. For this `data_source`, the reward server uses a scorer of the same kind as
            `scorer`.
        fields: fields of `extra_info` to send, if they are in the item that the scorer's `portable` returns.
        servers: the reward servers.
        allows_server_url: whether samples may name their own server in `extra_info.server_url`.
    """

    def __init__(
        self,
        scorer: Relayable[P],
        source: str,
        fields: Sequence[str],
        servers: RewardServers,
        *,
        allows_server_url: bool,
    ) -> None:
        self.source, self.on_error, self.timeout = scorer.source, scorer.on_error, scorer.timeout
        self.fallback, self.report = scorer.fallback, scorer.report
        if (count := scorer.count_groups) is not None:
            self.count_groups = lambda samples: count([sample.prepared for sample in samples])
        self._scorer = scorer
        self._data_source = source
        self._fields = fields
        self._servers = servers
        self._allows_server_url = allows_server_url

    def prepare(self, item: Item) -> RelayedSample[P] | Score:
        """Return the prepared sample, with the item for the reward server unless the sample names its own server."""
        if self._allows_server_url and Fields(item.extra).get("server_url"):
            prepared = self._scorer.prepare(item)
            return prepared if isinstance(prepared, Score) else RelayedSample(prepared, None)
        prepared = self._scorer.prepare(item, self._servers.default)
        if isinstance(prepared, Score):
            return prepared
        sendable = self._scorer.portable(item, prepared)
        if not may_be_cached(item.extra):
            sendable = replace(sendable, extra={**sendable.extra, CACHE_ENABLED: False})
        return RelayedSample(prepared, sendable)

    def batch(self, sample: RelayedSample[P]) -> BatchKey:
        """Return the scorer's batch key, but with larger batches for samples that go to the reward server.

        Batches can be larger, because the reward server itself limits how many samples it scores at a time. If a judge
        compares the members of a group, the group is one batch, which is sent in one request.
        """
        key = self._scorer.batch(sample.prepared)
        if sample.item is None:
            return key
        if key.is_group:
            return key._replace(name=("relayed", key.name))
        return key._replace(size=BATCH, name=("relayed", key.name), max_in_flight=key.max_in_flight * BATCH)

    async def quote(self, samples: Sequence[RelayedSample[P]], context: Context) -> Usage:
        """Return the usage as the scorer estimates it, because this process cannot ask the service to count tokens."""
        return self._scorer.estimate([sample.prepared for sample in samples])

    async def keys(self, samples: Sequence[RelayedSample[P]], context: Context) -> list[Key | None]:
        """Return a key for each sample that names its own server, None for other samples; raise as the scorer does."""
        direct = [sample.prepared for sample in samples if sample.item is None]
        keys = iter(await self._scorer.keys(direct, context) if direct else ())
        return [next(keys) if sample.item is None else None for sample in samples]

    async def score(self, samples: Sequence[RelayedSample[P]], context: Context) -> list[Score]:
        """Return one score for each sample; raise as the scorer and `RewardServers.score` do."""
        items = [sample.item for sample in samples if sample.item is not None]
        if not items:
            return await self._scorer.score([sample.prepared for sample in samples], context)
        is_group = self._scorer.batch(samples[0].prepared).is_group
        servers = self._servers.default
        return await self._servers.score(self._data_source, servers, items, self._fields, context, is_group=is_group)

    def describe(self, item: Item, sample: RelayedSample[P]) -> Record:
        """Return what the scorer reports about the sample, and whether the reward server scores it."""
        facts = {} if sample.item is None else {"relayed": "the reward server scores this sample"}
        return {**facts, **self._scorer.describe(item, sample.prepared)}
