"""Stop a run when too many of its recent samples have failed (`REWARDSTACK_MAX_FAILURE_RATE`)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from weakref import WeakKeyDictionary

from rewardstack.cause import Cause
from rewardstack.errors import BudgetError, FailureRateError, ScoringError
from rewardstack.score import Score
from rewardstack.settings import FAILURE_WINDOW, MAX_FAILURE_RATE, Settings


class FailureWindow:
    """The most recent samples of a process, and how many of them failed."""

    def __init__(self) -> None:
        self._failures: deque[tuple[Cause | None, str] | None] = deque()
        """The cause and reason of each sample that failed; None for a sample with another status."""
        self._failed = 0

    def add(self, scores: Iterable[Score], limit: float, size: int) -> None:
        """Add the scores of samples.

        Args:
            scores: the scores of the samples.
            limit: share of the window that may fail, from 0 to 1.
            size: size of the window in samples. `limit` is a share of this size even before the window is full, so
                that a few early failures do not stop a run.

        Raises:
            FailureRateError: more than `limit * size` of the samples in the window have failed.
        """
        for score in scores:
            while len(self._failures) >= size:
                self._failed -= self._failures.popleft() is not None
            failure = (score.cause, score.reason) if score.status == "failed" else None
            self._failures.append(failure)
            self._failed += failure is not None
        if self._failed > limit * size:
            raise FailureRateError(
                f"{self._failed:,} of the last {len(self._failures):,} samples failed, which is more than "
                f"{MAX_FAILURE_RATE} = {limit:g} allows for {FAILURE_WINDOW} = {size:,}; "
                f"most frequent reason: {self._most_frequent()}; "
                f"fix the cause and resume the run, or raise {MAX_FAILURE_RATE} (1: never stop)"
            )

    def _most_frequent(self) -> str:
        failures = [failure for failure in self._failures if failure is not None]
        [(most_frequent, count)] = Counter(cause for cause, _ in failures).most_common(1)
        last = next(reason for cause, reason in reversed(failures) if cause == most_frequent)
        return f"{last} ({count:,} samples)"


_windows: WeakKeyDictionary[asyncio.AbstractEventLoop, FailureWindow] = WeakKeyDictionary()


def add_scores(scores: Iterable[Score], settings: Settings) -> None:
    """Add samples to the failure window of the running loop; a forked process has its own loop and window.

    Raises:
        FailureRateError: more of the recent samples failed than the settings allow.
    """
    if settings.max_failure_rate < 1:
        window = _windows.setdefault(asyncio.get_running_loop(), FailureWindow())
        window.add(scores, settings.max_failure_rate, settings.failure_window)


async def count_failures(scoring: Awaitable[list[Score]], settings: Settings) -> list[Score]:
    """Await and return the scores of a call, and add them to the failure window.

    Samples that are not sent because the budget is spent count as failed. Their call raises `BudgetError` rather than
    `FailureRateError`, because `BudgetError` names the cause. If a trainer catches this error and continues, the next
    call raises `FailureRateError` if too many samples have failed.

    Raises:
        FailureRateError: more of the recent samples failed than the settings allow.
    """
    try:
        scores = await scoring
    except BudgetError as error:
        with suppress(FailureRateError):
            add_scores(error.scores, settings)
        raise
    except ScoringError as error:
        add_scores(error.scores, settings)
        raise
    add_scores(scores, settings)
    return scores
