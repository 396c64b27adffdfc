"""The one abstraction that everything plugs into: a `Scorer` turns items into scores.

A trainer's client has scorers that ask a service over HTTP; the reward server has one that runs rules itself.
The flow (`rewardstack.pipeline.pipeline`) does the rest for all of them: cache, shared calls, deadlines, policy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.score import Item, OnError, Score


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
class QuickScorer(Scorer, Protocol):
    """A scorer that has some scores for less than it costs to ask the cache's Redis: there they are not looked up, nor
    kept."""

    def at_once(self, item: Item) -> object:
        """The `Score` of an item, found in microseconds; what is no `Score` where it takes longer."""
        ...


@runtime_checkable
class DirectScorer(QuickScorer, Protocol):
    """A scorer that takes a caller's items as they come: it batches, shares and waits in its own way."""

    async def answer(self, begun: Sequence[Any], deadline: Deadline) -> list[Score]:
        """One score for each item, in order, within the deadline; what could not be scored by then is `failed`.

        Args:
            begun: what `at_once` left of each.
            deadline: of the caller.

        Raises:
            ConfigError: the caller is at fault.
        """
        ...


@runtime_checkable
class FallbackScorer(Scorer, Protocol):
    """A scorer that has a substitute for what its service did not score; used under the policy `lexical`."""

    def fallback(self, item: Item) -> Score:
        """The substitute, with status `fallback`; it may take a tenth of a second and is called off the loop."""
        ...


@runtime_checkable
class SlowScorer(Scorer, Protocol):
    """A scorer whose samples take long: each is asked for by itself, in an order, with a line in the log a batch."""

    def lane(self, item: Item) -> tuple[Hashable, int]:
        """What the item waits for, and how many items it takes at a time."""
        ...

    def order(self, items: Sequence[Item]) -> Sequence[int]:
        """The positions of the items in the order in which they are best sent."""
        ...

    def report(self, scores: Sequence[Score], seconds: float) -> None:
        """Logs what became of a batch, and the seconds that it took."""
        ...


MakeScorer = Callable[[str], Scorer]
"""A scorer for a leaf's target, such as a reward function's name."""
