"""What is said of a sample's score, by `/v1/score` and in the results of a job."""

from __future__ import annotations

from typing import Any

from rewardstack.score import Score

Reply = dict[str, Any]


def reply_of(score: Score) -> Reply:
    """A score with all that is known of it."""
    return {
        "value": score.value,
        "status": score.status,
        "reason": score.reason,
        "source": score.source,
        "cached": score.cached,
        "latency_ms": score.latency_ms,
        "details": score.details if score.parts is None else {**score.details, "parts": score.parts},
    }
