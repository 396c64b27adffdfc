"""What stands in for scores that a service did not give, where the policy is `lexical` and the scorer has it.

It is computed off the event loop, a few samples at a time, and not beyond the time that the call has.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rewardstack.pipeline.outcomes import checked
from rewardstack.score import Score

SHARE = 0.2
"""Of a call's time limit, kept for substitutes."""
SHARE_MOST = 5.0
"""Seconds kept for them at most."""
BATCH_MOST = 30.0
"""Seconds for the substitutes of one batch, where the call leaves them more."""
SLICE = 8
"""Samples that a thread is given at a time."""

P = TypeVar("P")

log = logging.getLogger(__name__)


def service_time(left: float) -> float:
    """Seconds that the service has, where the call has `left` and its substitutes need some of them."""
    return left - min(left * SHARE, SHARE_MOST)


async def fall_back(
    source: str, substitutes: Mapping[int, Callable[[], Score]], scores: list[Score], ends_at: float
) -> list[Score]:
    """`scores` with a substitute for each that failed.

    Args:
        source: who scored.
        substitutes: what makes the substitute of each sample that can have one, by position.
        scores: of the samples, in order.
        ends_at: when the call ends, on `time.monotonic()`; what has no substitute by then stays failed.
    """
    lost = [at for at in substitutes if scores[at].status == "failed"]
    if not lost:
        return scores
    log.warning(
        "%s: falling back to lexical similarity for %d of %d samples; the first: %s",
        *(source, len(lost), len(scores), scores[lost[0]].reason),
    )
    ends_at = min(ends_at, time.monotonic() + BATCH_MOST)
    for start in range(0, len(lost), SLICE):
        part = lost[start : start + SLICE]
        found = await _found([substitutes[at] for at in part], ends_at)
        if found is None:
            break
        for at, one in zip(part, found, strict=True):
            before = scores[at]
            reason = one.reason or f"lexical similarity, because: {before.reason}"
            scores[at] = replace(one, reason=reason, latency_ms=before.latency_ms, usage=before.usage)
    return scores


def substitute(fallback: Callable[[P], Score], sample: P) -> Score:
    """What `fallback` makes of a sample, or a failure where that is no reward."""
    return checked(fallback(sample))


async def _found(substitutes: Sequence[Callable[[], Score]], ends_at: float) -> list[Score] | None:
    """The substitutes, None where time runs out; a thread cannot be stopped, but need not be waited for."""
    left = ends_at - time.monotonic()
    if left <= 0:
        return None
    work = asyncio.ensure_future(asyncio.to_thread(lambda: [find() for find in substitutes]))
    await asyncio.wait({work}, timeout=left)
    return work.result() if work.done() else None
