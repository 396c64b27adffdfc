"""How long a service takes for its answers, and so when a request is stuck rather than slow.

A gateway passes some requests to a server that hangs while others are answered. What waits far longer than any other
took, though answers came in the meantime, is sent once more; the first answer counts.
"""

from __future__ import annotations

import time

LEAST = 2.0
"""Seconds that every request may take before it counts as stuck."""
SOON = 0.5
"""Seconds after which one looks again at a request of which nothing can be said yet."""
FACTOR = 2.0
"""How much longer than the slowest of late a stuck request has waited."""
DECAY = 0.99
"""Factor by which each answer makes the slowest one of late fade."""


class Pace:
    """The time that answers took of late."""

    def __init__(self) -> None:
        self._slowest = 0.0
        self._answered_at = 0.0

    def answered(self, sent_at: float) -> None:
        """A request that was sent at `sent_at`, on `time.monotonic()`, was answered."""
        self._answered_at = time.monotonic()
        self._slowest = max(self._answered_at - sent_at, self._slowest * DECAY)

    def stuck_in(self, sent_at: float) -> float:
        """Seconds until a request that was sent at `sent_at` counts as stuck, if then it still waits; 0 if it does now.

        Where nothing was answered since it was sent, all wait alike: one looks again later.
        """
        now = time.monotonic()
        if self._answered_at <= sent_at:
            return max(SOON, sent_at + LEAST - now)
        return max(0.0, sent_at + max(LEAST, FACTOR * self._slowest) - now)
