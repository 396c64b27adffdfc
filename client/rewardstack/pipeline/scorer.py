"""The one abstraction that everything plugs into: a `Scorer` turns items into scores.

A trainer's client has scorers that ask a service over HTTP; the reward server has one that runs rules itself.
The pipeline (`rewardstack.pipeline.pipeline`) does the rest for all of them: cache, shared calls, deadlines, policy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rewardstack.core.coalescing import Lane
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.score import Item, OnError, Score, Usage

if TYPE_CHECKING:
    from rewardstack.core.steps import Trace

P = TypeVar("P")


class Scorer(Protocol[P]):
    """Scores the items of one route, each of which it prepares once: `P` is what it makes of an item."""

    source: str
    """Its name in every `Score`, such as `rule:gsm8k`; not a `data_source`, of which several may lead to it."""

    on_error: OnError
    """What a sample without a score is worth, unless the route or the call says otherwise."""

    timeout: float
    """Seconds without progress after which a sample fails, unless its `extra_info` says otherwise."""

    fallback: Callable[[P], Score] | None = None
    """Makes the substitute for a sample that its service did not score, with status `fallback`; used under the policy
    `lexical`. It may take a tenth of a second and is called off the loop. None where there is no substitute."""

    at_once: Callable[[P], Score | None] | None = None
    """The score of a sample where it is found in microseconds, for less than it costs to ask the cache's Redis; it is
    neither looked up nor kept there. None of a sample that takes longer, and where all do."""

    quote: Callable[[Sequence[P], SharedDeadline], Awaitable[Usage]] | None = None
    """What samples would cost at most, `uncounted` being requests whose tokens are an estimate; nothing is scored, and
    a service that does not answer is none that raises. None where they cost nothing."""

    @abstractmethod
    def prepare(self, item: Item) -> P | Score:
        """All that is read of an item: options, templates, destination, references; its score where nobody is asked.

        Raises:
            RequestError: the item is at fault; the pipeline makes it `unscored`, and notes the field.
            ConfigError: any other: the environment is at fault; it reaches the caller.
        """
        ...

    @abstractmethod
    async def keys(self, prepared: Sequence[P], deadline: SharedDeadline) -> list[Key | None]:
        """The key of each sample, None for one that may be neither cached nor shared.

        Samples that travel in lanes are asked for their keys before they are scored.

        Raises:
            ServiceError: none of the samples can be scored; the pipeline makes each of them `failed`.
            ConfigError: the caller is at fault; it reaches the caller.
        """
        ...

    @abstractmethod
    async def score(self, prepared: Sequence[P], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order.

        Args:
            prepared: the samples, of one lane (`Sending`).
            deadline: of all who wait for them.

        Raises:
            ServiceError: none of the samples could be scored; the pipeline makes each of them `failed`.
            ConfigError: the caller is at fault; it reaches the caller.
        """
        ...

    def describe(self, item: Item, prepared: P) -> Mapping[str, Any]:
        """What was made of an item, for an explanation: facts by name, in plain JSON types."""
        return {}

    async def explain(self, prepared: P, deadline: SharedDeadline, trace: Trace) -> Score:
        """What `score` gives for one sample, and raises, with what was done for it noted in `trace`."""
        [score] = await self.score([prepared], deadline)
        trace.note("asked", {"scorer": self.source})
        return score


@dataclass(frozen=True, slots=True)
class Sending(Generic[P]):
    """How prepared samples are sent to their scorer.

    Args:
        lane: of a sample: which others it travels with, and how many of them at a time; None where the scorer takes a
            caller's samples as they come, and batches, shares and waits in its own way.
        order: the positions of a caller's samples in the order in which they are best sent (a judge reuses what they
            begin with alike); None for their own.
        report: logs what became of a caller's samples, and the seconds that it took.
    """

    lane: Callable[[P], Lane] | None
    order: Callable[[Sequence[P]], Iterable[int]] | None = None
    report: Callable[[Sequence[Score], float], None] | None = None


DIRECTLY: Sending[Any] = Sending(None)

MakeScorer = Callable[[str], tuple[Scorer[Any], Sending[Any]]]
"""A scorer for a leaf's target, such as a reward function's name, and how samples are sent to it."""
