"""The budget of retries: how many a service is sent."""

from __future__ import annotations

RETRY_SHARE = 0.1
"""Of a retry, which each request earns."""
RETRY_RESERVE = 10.0
"""Retries that are there from the start."""


class RetryBudget:
    """Retries may add a tenth to the load, no more: a service that answers with errors is not buried under repeats.

    Each request earns a tenth of a retry, up to a hundred; a few are there from the start.
    """

    def __init__(self) -> None:
        self._tokens = RETRY_RESERVE

    def earn(self) -> None:
        """Notes that a request was made."""
        self._tokens = min(self._tokens + RETRY_SHARE, RETRY_RESERVE * 10)

    def spend(self) -> bool:
        """Whether one more retry is affordable; takes its price if so."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
