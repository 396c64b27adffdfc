"""Reward functions on a reward server: `POST /v1/score`, in batches.

`GET /v1/reward_types` tells each function's fingerprint and the fields of `extra_info` that it reads: the key of the
cache is made of the former, and nothing but the latter leaves the trainer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.cache.key import EVERY_FIELD, read_fields, rule_key
from rewardstack.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ReplyError, RequestError, SettingsError, UnknownSourceError
from rewardstack.routes import RULE_PREFIX
from rewardstack.score import STATUSES, Item, OnError, Score
from rewardstack.scorer import Key
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.scorers.reward_types import RewardType, RewardTypes
from rewardstack.settings import Settings

BATCH = 64
"""Samples in one request."""

KNOCK = json.dumps({"items": []}).encode()


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
        self._servers = Servers(
            "REWARD_SERVER_URL",
            settings.reward_server_urls,
            settings.reward_server_api_key,
            "start a server with `make up` and `export REWARD_SERVER_URL=http://localhost:6000`",
        )
        self._find = find_service
        self._types = types

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """The same keys as the server's own, by the fingerprint that it gives; raises as `score` does."""
        keys: list[Key | None] = [None] * len(items)
        for destination, members in self._servers.group(items).items():
            about = await self._about(destination, deadline)
            if about is None:
                continue
            made = rule_key(self._name, about.fingerprint, about.fields, [items[at] for at in members])
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
            body = self._body([items[at] for at in members], fields)
            reply = await self._post(destination, body, deadline)
            for at, score in zip(members, self._read(reply, len(members)), strict=True):
                scores[at] = score
        return scores

    async def _about(self, destination: Destination, deadline: SharedDeadline) -> RewardType | None:
        return await self._types.find(self._name, destination, self._find(*destination), deadline)

    def _body(self, items: Sequence[Item], fields: Sequence[str]) -> bytes:
        source = RULE_PREFIX + self._name
        records = [
            {
                "data_source": source,
                "solution_str": item.solution,
                "ground_truth": list(item.references),
                "extra_info": read_fields(item.extra, fields),
            }
            for item in items
        ]
        try:
            return json.dumps({"items": records}).encode()
        except (TypeError, ValueError) as error:
            raise RequestError(f"extra_info: {error}; it must hold what JSON can", "extra_info") from error

    async def _post(self, destination: Destination, body: bytes, deadline: SharedDeadline) -> bytes:
        try:
            return await self._find(*destination).post("/v1/score", body, deadline, KNOCK)
        except RejectedError as error:
            if error.status == 404:
                raise UnknownSourceError(str(error), "data_source") from error
            if error.status == 401:
                raise SettingsError(f"{error}; set REWARD_SERVER_API_KEY", "REWARD_SERVER_API_KEY") from error
            raise

    def _read(self, reply: bytes, count: int) -> list[Score]:
        try:
            records = json.loads(reply)["scores"]
            scores = [_score(record, self.source) for record in records]
        except (ValueError, KeyError, TypeError) as error:
            raise ReplyError(f"{self.source}: the server's reply is no list of scores") from error
        if len(scores) != count:
            raise ReplyError(f"{self.source}: {len(scores)} scores came for {count} samples")
        return scores


def _score(record: Mapping[str, Any], source: str) -> Score:
    status, value = record["status"], record["value"]
    if status not in STATUSES:
        raise ValueError(status)
    scored = status in ("ok", "fallback")
    details = record.get("details") or {}
    return Score(
        float(value) if scored else None,
        status,
        str(record.get("reason", "")),
        str(record.get("source") or source),
        cached=record.get("cached") is True,
        parts={str(name): float(part) for name, part in details["parts"].items()} if details.get("parts") else None,
    )
