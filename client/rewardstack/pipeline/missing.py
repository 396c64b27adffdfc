"""Logs warnings about samples without a score: one line per batch and status, rate-limited for batches of one sample.

Without the rate limit, an outage would print a line for each call of a trainer that scores one sample per call. The
first `IMMEDIATE` warnings with the same cause are logged immediately. Later ones within a minute are counted, and
logged as one line when the minute or the process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rewardstack.cause import Cause
from rewardstack.score import MISSING_LOG, Score

IMMEDIATE = 3
"""Maximum number of warnings with the same cause that are logged immediately in each `PERIOD`."""
PERIOD = 60.0
"""Seconds from the first warning to the line with the number of further warnings."""
MAX_CAUSES = 256
"""Maximum number of causes whose warnings are counted at the same time."""
MISSING = {"failed": "{} samples failed", "unscored": "{} samples are unscored"}
"""The warning for each status without a score; the braces stand for the counts."""
FORMAT = "format"
"""The part that is 0 in the score of a response without the strict format of a rule."""
MIN_BATCH = 4
"""Minimum number of samples in a batch that misses a format as a whole."""
FALLBACK = "falling back to lexical similarity for {} samples"

log = logging.getLogger(MISSING_LOG)


@dataclass(slots=True)
class _RepeatedWarning:
    """The warnings with one cause.

    Args:
        until: end of their `PERIOD`, on `time.monotonic()`.
        count: number of the warnings, including those that were logged immediately.
        reason: the reason of the first warning that was not logged immediately; empty if all were logged.
    """

    until: float
    count: int = 0
    reason: str = ""


class MissingWarnings:
    """Logs warnings about samples without a score, and counts the repeated ones; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._repeats: dict[tuple[str, str, Cause | None], _RepeatedWarning] = {}

    def warn(self, source: str, warning: str, affected: int, count: int, first: Score) -> None:
        """Log a warning about samples of a batch. Repeated warnings about batches of one sample are only counted.

        Args:
            source: name of the scorer.
            warning: the warning, with braces for the counts.
            affected: number of samples that the warning is about.
            count: number of samples in the batch.
            first: the score of the first affected sample.
        """
        if count > 1 or self._should_log((source, warning, first.cause), first.reason):
            log.warning("%s: %s; first error: %s", source, warning.format(f"{affected:d} of {count:d}"), first.reason)

    def _should_log(self, key: tuple[str, str, Cause | None], reason: str) -> bool:
        """Count a warning; return whether it is one of the first `IMMEDIATE` with this cause within `PERIOD`."""
        self.log_repeats(time.monotonic() if len(self._repeats) < MAX_CAUSES else math.inf)
        with self._lock:
            repeats = self._repeats.get(key)
            if repeats is None:
                repeats = self._repeats[key] = _RepeatedWarning(time.monotonic() + PERIOD)
                asyncio.get_running_loop().call_later(PERIOD, self.log_repeats)
            repeats.count += 1
            if repeats.count == IMMEDIATE + 1:
                repeats.reason = reason
            return repeats.count <= IMMEDIATE

    def log_repeats(self, now: float | None = None) -> None:
        """Log the number of repeated warnings for each cause whose `PERIOD` has ended.

        Args:
            now: the current time on `time.monotonic()`; None to read the clock, infinity to log all causes.
        """
        with self._lock:
            now = time.monotonic() if now is None else now
            ended = [(key, repeats) for key, repeats in self._repeats.items() if repeats.until <= now]
            for key, _ in ended:
                del self._repeats[key]
        for (source, warning, _), repeats in ended:
            if (more := repeats.count - IMMEDIATE) > 0:
                text = warning.format(f"{more:d} more")
                log.warning("%s: %s within %g s; first error: %s", source, text, PERIOD, repeats.reason)


missing_warnings = MissingWarnings()
atexit.register(missing_warnings.log_repeats, math.inf)


@lru_cache(maxsize=64)
def _warn_of_format(source: str, reason: str) -> None:
    remedy = "prepend <think> to the responses if the chat template writes it, or score with a rule without a format"
    log.warning("%s: all samples of a batch are %s, so all of them have the same score; %s", source, reason, remedy)


def warn_of_missing(source: str, scores: Sequence[Score], count: int) -> None:
    """Warn about the samples of a batch that have no score, and once if a whole batch misses a format in the same way.

    Args:
        source: name of the scorer.
        scores: scores of the batch; scores with a value may be left out.
        count: number of samples in the batch.
    """
    reason = scores[0].reason if len(scores) >= max(count, MIN_BATCH) else ""
    if reason and all(score.reason == reason and (score.parts or {}).get(FORMAT) == 0 for score in scores):
        _warn_of_format(source, reason)
    missing = [score for score in scores if score.status in MISSING]
    for status in MISSING if missing else ():
        affected = [score for score in missing if score.status == status]
        if affected:
            missing_warnings.warn(source, MISSING[status], len(affected), count, affected[0])
