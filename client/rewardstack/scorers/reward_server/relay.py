"""A service that only the reward server knows: what names no server of its own is scored there, by the same route."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.score import Item, Score
from rewardstack.scorers.base import FallbackScorer, Scorer
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.scorers.reward_server.calls import BATCH, post_samples
from rewardstack.settings import Settings


class Relay:
    """Stands in for a scorer whose own service the environment does not name.

    Samples that name a server themselves are left to the scorer. The others have no key here: the reward server has
    the cache.

    Args:
        scorer: that asks the service directly.
        data_source: under which the reward server has the same scorer.
        fields: of `extra_info` that it reads, but for those that say where and how long to ask.
        settings: the reward servers and their key.
        find_service: opens connections.
        prepare: makes a sample ready to leave this machine, or is its score where it need not.
    """

    batch_size = BATCH

    def __init__(
        self,
        scorer: Scorer,
        data_source: str,
        fields: Sequence[str],
        settings: Settings,
        find_service: FindService,
        prepare: Callable[[Item], Item | Score] = lambda item: item,
    ) -> None:
        self.source, self.on_error, self.timeout = scorer.source, scorer.on_error, scorer.timeout
        if isinstance(scorer, FallbackScorer):
            self.fallback = scorer.fallback
        self._scorer = scorer
        self._data_source = data_source
        self._fields = tuple(fields)
        self._destination = Destination(settings.reward_server_urls, settings.reward_server_api_key)
        self._find = find_service
        self._prepare = prepare

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """Keys of the samples that name a server; raises as their scorer does."""
        keys: list[Key | None] = [None] * len(items)
        own = [at for at, item in enumerate(items) if item.extra.get("server_url")]
        if own:
            for at, key in zip(own, await self._scorer.keys([items[at] for at in own], deadline), strict=True):
                keys[at] = key
        return keys

    async def score(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        """One score for each item, in order; raises as the scorer and `post_samples` do."""
        own = [at for at, item in enumerate(items) if item.extra.get("server_url")]
        others = [at for at, item in enumerate(items) if not item.extra.get("server_url")]
        asked = [(part, ask) for part, ask in ((own, self._scorer.score), (others, self._relay)) if part]
        found = await asyncio.gather(*(ask([items[at] for at in part], deadline) for part, ask in asked))
        scores: dict[int, Score] = {}
        for (part, _), some in zip(asked, found, strict=True):
            scores.update(zip(part, some, strict=True))
        return [scores[at] for at in range(len(items))]

    async def _relay(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        prepared = [self._prepare(item) for item in items]
        sent = [item for item in prepared if isinstance(item, Item)]
        service = self._find(*self._destination)
        found = await post_samples(service, self._data_source, sent, self._fields, deadline) if sent else []
        answers = iter(found)
        return [next(answers) if isinstance(item, Item) else item for item in prepared]
