"""The interface between pipeline and services: a `Scorer` returns scores for prepared samples, given a `Context`."""

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
"""A deadline that never passes."""

P = TypeVar("P")


@dataclass(slots=True)
class Context:
    """What a stage or scorer knows about the call besides its samples.

    Args:
        deadline: deadline of the work, which all waiting callers share. The pipeline sets this field before it calls a
            scorer.
        waiter_deadline: deadline to pass to a batcher: the caller's deadline, or the shared deadline of a batch.
        tenant: cache namespace of the caller.
        ends_at: end of the call, on `time.monotonic()`.
        timeout: seconds without progress after which the samples fail; None for the scorer's timeout.
        may_extend: whether `timeout` may exceed the scorer's timeout; true for trainers, false for a server's clients.
        lexical: whether failed samples get substitutes (policy `lexical`).
        budget_errors: list that collects `BudgetError`s; if it is not empty, the call ends with an error. None if the
            call or the route sets `on_error`, which then applies to samples that the budget does not allow.
        batch: all items of the call, to detect an option that is invalid in all of them; empty for no check.
        trace: records the steps of stages and scorers; None for no trace. With a trace, no request is shared with other
            calls, and no score is written to the cache.
    """

    deadline: SharedDeadline = UNLIMITED
    waiter_deadline: Deadline | SharedDeadline = UNLIMITED
    tenant: str = ""
    ends_at: float = math.inf
    timeout: float | None = None
    may_extend: bool = True
    lexical: bool = False
    budget_errors: list[BudgetError] | None = None
    batch: Sequence[Item] = ()
    trace: Trace | None = None

    def timeout_of(self, scorer: Scorer[Any]) -> float:
        """Return the seconds without progress after which the samples fail at this scorer."""
        if self.timeout is None:
            return scorer.timeout
        return self.timeout if self.may_extend else min(self.timeout, scorer.timeout)


class Scorer(ABC, Generic[P]):
    """Scores samples with one service or function; a subclass must define `source`, `timeout` and `score`.

    Attributes:
        source: the scorer's name in every `Score`, such as `rule:gsm8k`.
        timeout: seconds without progress after which a sample fails; the sample's `extra_info` can override it.
        on_error: policy for samples without a score; the route or the call can override it.
        inline: returns the score of a prepared sample if that takes only microseconds, less than a Redis lookup.
            Otherwise, it returns the prepared sample, with intermediate results that `score` can reuse.
        is_shaped: whether a reward server has already applied the route's `scale`, `shift` and `clip`.
        fallback: returns a substitute with status `fallback` for an item that the service did not score. It may take
            0.1 s, and runs in a thread.
        batch: returns the batch key of a prepared sample; None if the scorer does its own batching.
        report: logs the scores of a caller's samples and the elapsed seconds.
        quote: returns the maximum usage of prepared samples, estimated if the service does not answer; None for scorers
            that use no model server.
        count_groups: returns how many groups prepared samples form; None for scorers that score each sample alone.
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
    count_groups: Callable[[Sequence[P]], int] | None = None

    @abstractmethod
    async def score(self, samples: Sequence[P], context: Context) -> list[Score]:
        """Return one score for each prepared sample, in order.

        Raises:
            ServiceError: none of the samples could be scored; the pipeline gives each the status `failed`.
            ConfigError: a setting or argument of the caller is invalid; the error reaches the caller.
        """

    def prepare(self, item: Item) -> P | Score:
        """Return the prepared sample of an item, or its score if no service is needed.

        Raises:
            RequestError: the item is invalid; the pipeline gives it the status `unscored`, and records the field.
            ConfigError: a setting is invalid; the error reaches the caller.
        """
        return item  # type: ignore[return-value]

    async def keys(self, samples: Sequence[P], context: Context) -> list[Key | None]:
        """Return the cache key of each sample; None if its score must not be cached or shared.

        Raises:
            ServiceError, ConfigError: see `score`.
        """
        return [None] * len(samples)

    def describe(self, item: Item, sample: P) -> Mapping[str, Any]:
        """Return facts about a prepared sample for a trace, in plain JSON types."""
        return {}


MakeScorer = Callable[[str], Scorer[Any]]
"""Creates the scorer for a leaf's target, such as the name of a reward function."""
