"""Retries may add a tenth to the load, no more: a service that answers with errors is not buried under repeats."""

from __future__ import annotations

SHARE = 0.1
RESERVE = 10.0


class RetryBudget:
    """Each request earns a tenth of a retry, up to a hundred; a few are there from the start."""

    def __init__(self) -> None:
        self._tokens = RESERVE

    def earn(self) -> None:
        """Notes that a request was made."""
        self._tokens = min(self._tokens + SHARE, RESERVE * 10)

    def spend(self) -> bool:
        """Whether one more retry is affordable; takes its price if so."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
