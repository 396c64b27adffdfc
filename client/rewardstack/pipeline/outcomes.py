"""What became of samples: is it a reward, whose copy is it, is it kept, and who hears that there is none."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rewardstack.core.keys import Key
from rewardstack.errors import ConfigError
from rewardstack.score import Score

Reply = Score | ConfigError
"""What becomes of a sample that is sent."""
SAID = {"failed": "failed", "unscored": "are unscored"}
"""Of samples without a score, by their status."""

log = logging.getLogger(__name__)


def worth_keeping(outcomes: Iterable[tuple[Key | None, Reply]]) -> list[tuple[str, Score]]:
    """What is kept: without what it took, for who reads it takes nothing."""
    return [
        (key.text, one if one.usage is None else replace(one, usage=None))
        for key, one in outcomes
        if key is not None and isinstance(one, Score) and one.status == "ok"
    ]


def warn_of_missing(source: str, scores: Sequence[Score], count: int) -> None:
    """Says once a batch, not once a sample, that some have no score.

    Args:
        source: who scored.
        scores: of the batch, at least those that have none.
        count: of the samples in the batch.
    """
    missing = [score for score in scores if score.status in SAID]
    for status in SAID if missing else ():
        lost = [score.reason for score in missing if score.status == status]
        if lost:
            log.warning("%s: %d of %d samples %s; the first: %s", source, len(lost), count, SAID[status], lost[0])


def checked(score: Score) -> Score:
    """`score`, or a failure where it is not what its status says: NaN and infinity are no rewards."""
    value = score.value
    if score.status in ("ok", "fallback") and (value is None or not math.isfinite(value)):
        return Score.failed(f"{value} is no reward", score.source)
    return score


def without_substitute(score: Score) -> Score:
    """A reward server may have used a substitute that this caller does not want."""
    return replace(score, value=None, status="failed") if score.status == "fallback" else score


def milliseconds(since: float) -> float:
    """Milliseconds since `since`, which is a time of `time.monotonic()`."""
    return round((time.monotonic() - since) * 1000, 3)


def timed(score: Score, elapsed: float, *, cached: bool) -> Score:
    """A copy of its own: what the cache and other waiters hold is not the caller's to change.

    What it took is told to the first of those who share it alone.
    """
    parts = None if score.parts is None else dict(score.parts)
    usage, score.usage = score.usage, None
    return Score(
        score.value,
        score.status,
        score.reason,
        score.source,
        cached,
        elapsed,
        score.label_mass,
        parts,
        score.agreement,
        score.field,
        usage,
    )
