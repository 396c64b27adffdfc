"""A service that only the reward server knows: what names no server of its own is scored there, by the same route."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from rewardstack.cache.key import CACHE_ENABLED, may_be_cached
from rewardstack.core.coalescing import Lane
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import Fields
from rewardstack.core.keys import Key
from rewardstack.core.steps import Trace
from rewardstack.core.wire import Record
from rewardstack.errors import RejectedError
from rewardstack.pipeline.scorer import Scorer, Sending
from rewardstack.score import Item, Score, Usage
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.scorers.reward_server.scorer import BATCH, explain_sample, post_samples, reward_servers
from rewardstack.settings import Settings

P = TypeVar("P")


class Relayable(Scorer[P], Protocol[P]):
    """A scorer whose samples a reward server can score in its place."""

    def prepare(self, item: Item, destination: Destination | None = None) -> P | Score:
        """As every scorer does.

        Args:
            item: the sample.
            destination: who is asked, whatever the item and the environment say; None for whom they name.
        """
        ...

    def portable(self, item: Item, prepared: P) -> Item:
        """The item as it can leave this machine, with all that the scorer reads of it."""
        ...

    def estimate(self, prepared: Sequence[P]) -> Usage:
        """What samples would cost, without asking their service."""
        ...


@dataclass(frozen=True, slots=True)
class Relayed(Generic[P]):
    """A sample as its scorer prepared it.

    Args:
        prepared: what the scorer made of it.
        item: what the reward server is sent; None for a sample that names a server of its own.
    """

    prepared: P
    item: Item | None


class Relay(Scorer[Relayed[P]]):
    """Stands in for a scorer whose own service the environment does not name.

    Samples that name a server themselves are left to the scorer. The others have no key here: the reward server has
    the cache. All are prepared and sent as the scorer's own, and have its substitutes.

    Args:
        scorer: that asks the service directly.
        data_source: under which the reward server has the same scorer.
        fields: of `extra_info` that it reads, but for those that say where and how long to ask.
        settings: the reward servers and their key.
        find_service: opens connections.
        movable: whether samples may name a server themselves.
    """

    def __init__(
        self,
        scorer: Relayable[P],
        data_source: str,
        fields: Sequence[str],
        settings: Settings,
        find_service: FindService,
        *,
        movable: bool = True,
    ) -> None:
        self.source, self.on_error, self.timeout = scorer.source, scorer.on_error, scorer.timeout
        self.fallback = _of_prepared(scorer.fallback) if scorer.fallback is not None else None
        self.quote = self._quote
        self._scorer = scorer
        self._data_source = data_source
        self._fields = tuple(fields)
        self._servers = reward_servers(settings)
        self._destination = self._servers.own
        self._find = find_service
        self._cached = settings.cache_on
        self._movable = movable

    def prepare(self, item: Item) -> Relayed[P] | Score:
        """As the scorer prepares it, for the reward server unless it names a server of its own."""
        own = self._movable and bool(Fields(item.extra).get("server_url"))
        prepared = self._scorer.prepare(item, None if own else self._destination)
        if isinstance(prepared, Score):
            return prepared
        return Relayed(prepared, None if own else self._portable(item, prepared))

    async def _quote(self, prepared: Sequence[Relayed[P]], deadline: SharedDeadline) -> Usage:
        """An estimate, for only the reward server knows the service, and what is in its cache."""
        return self._scorer.estimate([sample.prepared for sample in prepared])

    def _portable(self, item: Item, prepared: P) -> Item:
        sent = self._scorer.portable(item, prepared)
        return sent if may_be_cached(item.extra) else replace(sent, extra={**sent.extra, CACHE_ENABLED: False})

    def sending(self, own: Sending[P]) -> Sending[Relayed[P]]:
        """How samples are sent: as to the scorer itself, but that the reward server takes several in one request."""
        order = own.order
        return Sending(
            own.lane and _relayed_lane(own.lane),
            order and (lambda samples: order([sample.prepared for sample in samples])),
            own.report,
        )

    async def keys(self, prepared: Sequence[Relayed[P]], deadline: SharedDeadline) -> list[Key | None]:
        """Keys of the samples that name a server; raises as their scorer does."""
        own = [sample.prepared for sample in prepared if sample.item is None]
        keys = iter(await self._scorer.keys(own, deadline) if own else ())
        return [next(keys) if sample.item is None else None for sample in prepared]

    async def score(self, prepared: Sequence[Relayed[P]], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order; raises as the scorer and `post_samples` do."""
        samples = [(sample.item, self._fields) for sample in prepared if sample.item is not None]
        if not samples:
            return await self._scorer.score([sample.prepared for sample in prepared], deadline)
        service = self._find(*self._destination)
        try:
            return await post_samples(service, self._data_source, samples, deadline, self._cached)
        except RejectedError as error:
            raise self._servers.explained(error, self._destination) from error

    def describe(self, item: Item, prepared: Relayed[P]) -> Record:
        """As the scorer describes it, and who asks in its place."""
        facts = {} if prepared.item is None else {"relayed": "the reward server asks in this machine's place"}
        return {**facts, **self._scorer.describe(item, prepared.prepared)}

    async def explain(self, prepared: Relayed[P], deadline: SharedDeadline, trace: Trace) -> Score:
        """The score, with the steps of who asks noted; raises as `score` does."""
        if prepared.item is None:
            return await self._scorer.explain(prepared.prepared, deadline, trace)
        service, sample = self._find(*self._destination), (prepared.item, self._fields)
        score = await explain_sample(service, self._data_source, sample, deadline, self._cached, trace)
        return await super().explain(prepared, deadline, trace) if score is None else score


def _of_prepared(fallback: Callable[[P], Score]) -> Callable[[Relayed[P]], Score]:
    return lambda sample: fallback(sample.prepared)


def _relayed_lane(lane_of: Callable[[P], Lane]) -> Callable[[Relayed[P]], Lane]:
    def lane(sample: Relayed[P]) -> Lane:
        own = lane_of(sample.prepared)
        if sample.item is None:
            return own
        # As many requests as the scorer has samples at a time: the reward server bounds those itself.
        return own._replace(size=BATCH, name=("relayed", own.name), width=own.width * BATCH)

    return lane
