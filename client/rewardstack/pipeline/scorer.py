"""What plugs into the pipeline: a `Scorer` turns prepared samples into scores, within a `Context`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rewardstack.cache.key import Key
from rewardstack.core.batching import BatchKey
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import BudgetError
from rewardstack.score import Item, OnError, Score, Usage

if TYPE_CHECKING:
    from rewardstack.core.steps import Trace

UNLIMITED = SharedDeadline(Deadline(math.inf))

P = TypeVar("P")


@dataclass(slots=True)
class Context:
    """What holds for all samples that a stage is given.

    Args:
        deadline: of all who wait; a scorer's context has one.
        waits: the deadline for a batcher: the caller's own, which others who share a call do not extend, or a batch's.
        tenant: separates those who may not see each other's results.
        ends_at: when the call ends, on `time.monotonic()`.
        timeout: seconds without progress after which samples fail, as they ask for; None for their scorer's.
        may_extend: whether they may ask for more than their scorer's: a trainer's own may, a server's clients may not.
        lexical: whether failures get substitutes (policy `lexical`).
        refused: collects what the run's budget refuses, if that ends the call; None if the policy gives the value.
        batch: all items of the call, if an option that is wrong in each of them is raised; else empty.
        trace: where stages and scorers note their steps; None if nobody reads them. Nothing is shared or cached then.
    """

    deadline: SharedDeadline = UNLIMITED
    waits: Deadline | SharedDeadline = UNLIMITED
    tenant: str = ""
    ends_at: float = math.inf
    timeout: float | None = None
    may_extend: bool = True
    lexical: bool = False
    refused: list[BudgetError] | None = None
    batch: Sequence[Item] = ()
    trace: Trace | None = None

    def timeout_of(self, scorer: Scorer[Any]) -> float:
        """Return the seconds without progress after which samples fail at a scorer."""
        if self.timeout is None:
            return scorer.timeout
        return self.timeout if self.may_extend else min(self.timeout, scorer.timeout)


class Scorer(ABC, Generic[P]):
    """Scores samples by one service or function; only `score` has to be written, all else is a capability.

    Attributes:
        source: its name in every `Score`, such as `rule:gsm8k`.
        timeout: seconds without progress after which a sample fails, unless its `extra_info` says otherwise.
        on_error: the policy for samples without a score, unless the route or the call says otherwise.
        inline: returns the score of a prepared sample if it is found in microseconds, for less than a lookup in Redis;
            else the sample with all that was found out for `score`.
        is_shaped: whether its scores have the route's shape already, which a reward server gave them.
        fallback: returns the substitute, with status `fallback`, for an item that its service did not score; it may
            take a tenth of a second and is called in a thread.
        batch: the batch key of a prepared sample; None if the scorer takes a caller's samples as they come, and
            batches and waits itself.
        report: logs what became of a caller's samples, and the seconds that it took.
        quote: returns what prepared samples would cost at most, an estimate if the service does not answer; None if
            they cost nothing.
    """

    source: str
    timeout: float
    on_error: OnError = "zero"
    is_shaped: bool = False
    inline: Callable[[P], Score | P] | None = None
    fallback: Callable[[Item], Score] | None = None
    batch: Callable[[P], BatchKey] | None = None
    report: Callable[[Sequence[Score], float], None] | None = None
    quote: Callable[[Sequence[P], Context], Awaitable[Usage]] | None = None

    @abstractmethod
    async def score(self, samples: Sequence[P], context: Context) -> list[Score]:
        """Return one score for each prepared sample, in order.

        Raises:
            ServiceError: none of the samples could be scored; the pipeline makes each of them `failed`.
            ConfigError: the caller is at fault; it reaches the caller.
        """

    def prepare(self, item: Item) -> P | Score:
        """Return what `score` needs of an item, or the item's score if nobody has to be asked.

        Raises:
            RequestError: the item is at fault; the pipeline makes it `unscored`, and notes the field.
            ConfigError: any other: the environment is at fault; it reaches the caller.
        """
        return item  # type: ignore[return-value]

    async def keys(self, samples: Sequence[P], context: Context) -> list[Key | None]:
        """Return the samples' cache keys, None for one that may be neither cached nor shared; raise as `score` does."""
        return [None] * len(samples)

    def describe(self, item: Item, sample: P) -> Mapping[str, Any]:
        """Return what was made of an item, for a trace: facts by name, in plain JSON types."""
        return {}


MakeScorer = Callable[[str], Scorer[Any]]
"""Makes the scorer for a leaf's target, such as a reward function's name."""
