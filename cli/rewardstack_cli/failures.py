"""The failures of a run by route: stop a route that keeps failing, and report the rows without a score at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rewardstack.score import Score
from rewardstack_cli.console import say

MOST_CONSECUTIVE = 200
"""Number of consecutive failed rows of a route after which no more of its rows are sent."""

LEFT_OUT = "not sent"
"""Source of the score of a row that was not sent, in place of a scorer's name."""


class Failures:
    """Counts the rows of a run that have no score of their own."""

    def __init__(self) -> None:
        self._consecutive: Counter[str] = Counter()
        self._stopped: dict[str, str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def left_out(self, route: str) -> Score | None:
        """Return the score of a row that is not sent because its route is stopped; None if the row should be sent."""
        reason = self._stopped.get(route)
        return None if reason is None else Score.unscored(reason, LEFT_OUT)

    def count(self, route: str, score: Score) -> None:
        """Count the next row of a route, in the order of the file; stop the route if too many have failed.

        Args:
            route: pattern of the row's route.
            score: score of the row.
        """
        if score.status == "ok":
            # A cached score does not show that the service works.
            self._consecutive[route] *= score.cached
            return
        kind = LEFT_OUT if score.source == LEFT_OUT else score.status
        self._counts[route, kind] += 1
        self._first.setdefault((route, kind), score.reason)
        if score.status != "failed":
            return
        self._consecutive[route] += 1
        if self._consecutive[route] == MOST_CONSECUTIVE and route not in self._stopped:
            why = f"{MOST_CONSECUTIVE} rows in a row failed; last error: {score.reason}"
            self._stopped[route] = f"not sent: of the route {route}, {why}"
            say(f"{route}: {why}; its remaining rows are left unscored")

    def lines(self) -> Iterator[str]:
        """Yield for each route and status without a score of its own the number of rows and the first reason."""
        for (route, kind), count in sorted(self._counts.items()):
            rows = "1 row" if count == 1 else f"{count:,} rows"
            if kind == LEFT_OUT:
                yield f"{route}: {rows} left unscored after {MOST_CONSECUTIVE} failures in a row"
            else:
                yield f"{route}: {rows} {kind}; first error: {self._first[route, kind]}"
