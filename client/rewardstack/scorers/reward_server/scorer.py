"""Reward functions on a reward server: `POST /v1/score`, in batches.

`GET /v1/reward_types` tells each function's fingerprint and the fields of `extra_info` that it reads: the key of the
cache is made of the former, and nothing but the latter leaves the trainer.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack.cache.key import EVERY_FIELD, rule_key
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.routing.routes import RULE_PREFIX
from rewardstack.score import Item, OnError, Score
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.scorers.reward_server.calls import BATCH, post_samples, reward_servers
from rewardstack.scorers.reward_server.reward_types import RewardType, RewardTypes
from rewardstack.settings import Settings


class RemoteRule:
    """One reward function, on a reward server.

    Args:
        name: of the function.
        settings: the servers, their key, how long to wait.
        find_service: opens connections.
        types: what the servers said of their functions.
    """

    on_error: OnError = "zero"
    batch_size = BATCH

    def __init__(self, name: str, settings: Settings, find_service: FindService, types: RewardTypes) -> None:
        self.source = f"rule:{name}"
        self.timeout = settings.reward_server_timeout
        self._name = name
        self._data_source = RULE_PREFIX + name
        self._servers = reward_servers(settings)
        self._find = find_service
        self._types = types

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """The same keys as the server's own, by the fingerprint that it gives; raises as `score` does."""
        keys: list[Key | None] = [None] * len(items)
        for destination, members in self._servers.group(items).items():
            about = await self._about(destination, deadline)
            if about is None:
                continue
            some = [items[at] for at in members]
            made = rule_key(self._name, about.fingerprint, about.fields, some, about.range)
            for at, key in zip(members, made, strict=True):
                keys[at] = key
        return keys

    async def score(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        """One score for each item, in order.

        Raises:
            DeadlineError, ReplyError: the server did not score them.
            UnknownSourceError: it has no such function; lists those it has.
            SettingsError: no server is set, or it does not take the key.
        """
        scores: list[Score] = [Score.failed("not scored", self.source)] * len(items)
        for destination, members in self._servers.group(items).items():
            about = await self._about(destination, deadline)
            fields = about.fields if about else (EVERY_FIELD,)
            asked = [items[at] for at in members]
            found = await post_samples(self._find(*destination), self._data_source, asked, fields, deadline)
            for at, score in zip(members, found, strict=True):
                score.source = self.source
                scores[at] = score
        return scores

    async def _about(self, destination: Destination, deadline: SharedDeadline) -> RewardType | None:
        return await self._types.find(self._name, destination, self._find(*destination), deadline)
