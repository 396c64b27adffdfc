"""What reward servers say of their functions: `GET /v1/reward_types`.

A reward type is on the wire what a rule is in a reward server: a reward function under its name.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Hashable
from functools import partial
from typing import Any, NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import ANY, Range
from rewardstack.errors import RejectedError, ReplyError, UnknownSourceError
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.endpoint_pool import EndpointPool

log = logging.getLogger(__name__)


class RewardType(NamedTuple):
    """One reward function.

    Args:
        fingerprint: hash of its source and of its libraries' versions.
        fields: of `extra_info` that it reads; `("*",)` for all.
        range: of its values.
    """

    fingerprint: str
    fields: tuple[str, ...]
    range: Range


class RewardTypes:
    """The functions of every server asked so far."""

    def __init__(self) -> None:
        self._served: Discovery[Hashable, dict[str, RewardType] | None] = Discovery()

    async def find(
        self, name: str, destination: Hashable, service: EndpointPool, deadline: SharedDeadline
    ) -> RewardType | None:
        """What `service` says of the function `name`, None where it does not tell.

        Args:
            name: of the function.
            destination: the service's identity.
            service: to ask.
            deadline: of the caller.

        Raises:
            DeadlineError: it did not answer in time.
            UnknownSourceError: it has no such function; lists those it has.
        """
        ask = partial(_ask, service)
        asked_at = time.monotonic()
        types = await self._served.find(destination, ask, deadline)
        if types is not None and name not in types and not self._served.has_answered_since(destination, asked_at):
            types = await self._served.find_anew(destination, ask, deadline)
        if types is None:
            return None
        if name not in types:
            raise UnknownSourceError(
                f"the reward server has no {name!r}; it has: {', '.join(sorted(types))}", "data_source"
            )
        return types[name]


async def _ask(service: EndpointPool, deadline: SharedDeadline) -> dict[str, RewardType] | None:
    try:
        types: dict[str, RewardType] = await service.get("/v1/reward_types", deadline, read=_read)
        return types
    except (RejectedError, ReplyError) as error:
        log.warning("the reward server does not tell its reward types, so its scores are not cached: %s", error)
        return None


def _read(data: bytes) -> dict[str, RewardType]:
    try:
        reply: Any = json.loads(data)
        return {
            name: RewardType(about["fingerprint"], tuple(about["fields"]), _range(*about.get("range", ANY)))
            for name, about in reply["reward_types"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplyError("it is no list of reward types") from error


def _range(low: float | None, high: float | None) -> Range:
    """As JSON writes it, which has no infinity."""
    return ANY[0] if low is None else float(low), ANY[1] if high is None else float(high)
