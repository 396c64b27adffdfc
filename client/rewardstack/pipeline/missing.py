"""Log warnings about samples without a score: a line per batch and cause, and few per minute for single samples.

An outage would otherwise print a line for each call of a trainer that scores sample by sample. The first `AT_ONCE` of
them are logged at once. Those with the same cause in the rest of the minute are counted, and logged as one line when
the minute or the process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import math
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rewardstack.score import MISSING_LOG, Score

AT_ONCE = 3
"""Warnings about single samples with the same cause that are logged at once in each `PERIOD`."""
PERIOD = 60.0
"""Seconds from the first warning to the line that counts those after `AT_ONCE`."""
MOST_CAUSES = 256
"""Maximum number of causes whose warnings are counted at the same time."""
MISSING = {"failed": "{} samples failed", "unscored": "{} samples are unscored"}
"""The warning for each status without a score; the braces stand for the counts."""
FALLBACK = "falling back to lexical similarity for {} samples"

CHANGING = re.compile(r"\d+(\.\d+)? (?=m?s\b|times\b|(other )?(requests?|samples?)\b)")
"""Times and counts in a reason, which differ between failures of the same cause."""

log = logging.getLogger(MISSING_LOG)


@dataclass(slots=True)
class _Repeats:
    """The warnings about single samples with the same cause; the reason is that of the first that is only counted."""

    until: float
    count: int = 0
    reason: str = ""


class MissingWarnings:
    """Logs warnings about samples without a score, and counts the repeated ones; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._repeats: dict[tuple[str, str, str], _Repeats] = {}

    def warn(self, source: str, what: str, lost: int, count: int, reason: str) -> None:
        """Log that samples of a batch have no score, or count it if it is a single sample with a frequent cause.

        Args:
            source: name of the scorer.
            what: what is wrong with the samples, with braces for the counts.
            lost: number of samples without a score.
            count: number of samples in the batch.
            reason: why the first of them has no score.
        """
        if count > 1 or self._is_rare((source, what, CHANGING.sub("", reason)), reason):
            log.warning("%s: %s; first error: %s", source, what.format(f"{lost:d} of {count:d}"), reason)

    def _is_rare(self, cause: tuple[str, str, str], reason: str) -> bool:
        """Count a single sample; return whether at most `AT_ONCE` had this cause within `PERIOD`."""
        self.log_repeats(time.monotonic() if len(self._repeats) < MOST_CAUSES else math.inf)
        with self._lock:
            repeats = self._repeats.get(cause)
            if repeats is None:
                repeats = self._repeats[cause] = _Repeats(time.monotonic() + PERIOD)
                asyncio.get_running_loop().call_later(PERIOD, self.log_repeats)
            repeats.count += 1
            if repeats.count == AT_ONCE + 1:
                repeats.reason = reason
            return repeats.count <= AT_ONCE

    def log_repeats(self, now: float | None = None) -> None:
        """Log what was counted for the causes whose `PERIOD` has ended.

        Args:
            now: the present on `time.monotonic()`; None to read the clock, infinity for all causes.
        """
        with self._lock:
            now = time.monotonic() if now is None else now
            ended = [(key, repeats) for key, repeats in self._repeats.items() if repeats.until <= now]
            for key, _ in ended:
                del self._repeats[key]
        for (source, what, _), repeats in ended:
            if (more := repeats.count - AT_ONCE) > 0:
                said = what.format(f"{more:d} more")
                log.warning("%s: %s within %g s; first error: %s", source, said, PERIOD, repeats.reason)


missing_warnings = MissingWarnings()
atexit.register(missing_warnings.log_repeats, math.inf)


def warn_of_missing(source: str, scores: Sequence[Score], count: int) -> None:
    """Warn about the samples of a batch that have no score.

    Args:
        source: name of the scorer.
        scores: scores of the batch, at least those without a value.
        count: number of samples in the batch.
    """
    missing = [score for score in scores if score.status in MISSING]
    for status in MISSING if missing else ():
        lost = [score.reason for score in missing if score.status == status]
        if lost:
            missing_warnings.warn(source, MISSING[status], len(lost), count, lost[0])
