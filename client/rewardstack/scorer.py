"""The one abstraction that everything plugs into: a `Scorer` turns items into scores.

A trainer's client has scorers that ask a service over HTTP; the reward server has one that runs rules itself.
The flow (`rewardstack.flow`) does the rest for all of them: cache, shared calls, deadlines, policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rewardstack.deadline import Deadline, SharedDeadline
from rewardstack.score import Item, OnError, Score


class Key(NamedTuple):
    """What a score depends on, hashed.

    Args:
        text: the cache key (`rewardstack.cache.key`).
        deterministic: whether asking twice gives the same score, so that identical requests in flight share one call.
    """

    text: str
    deterministic: bool = True


class Scorer(Protocol):
    """Scores the items of one route."""

    source: str
    """Who scores, such as `rule:gsm8k`; stands in every `Score`."""

    on_error: OnError
    """What a sample without a score is worth, unless the route or the call says otherwise."""

    timeout: float
    """Seconds without progress after which a sample fails, unless its `extra_info` says otherwise."""

    batch_size: int
    """How many items one call of `score` takes at most."""

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """The key of each item, None for one that may be neither cached nor shared.

        Raises:
            ServiceError: none of the items can be scored; the flow makes each of them `failed`.
            ConfigError: the caller is at fault; it reaches the caller.
        """
        ...

    async def score(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        """One score for each item, in order.

        Raises:
            ServiceError: none of the items could be scored; the flow makes each of them `failed`.
            ConfigError: the caller is at fault; it reaches the caller.
        """
        ...


@runtime_checkable
class DirectScorer(Scorer, Protocol):
    """A scorer that takes a caller's items as they come: it batches, shares and waits in its own way."""

    async def answer(self, items: Sequence[Item], deadline: Deadline) -> list[Score]:
        """One score for each item, in order, within the deadline; what could not be scored by then is `failed`.

        Raises:
            ConfigError: the caller is at fault.
        """
        ...
