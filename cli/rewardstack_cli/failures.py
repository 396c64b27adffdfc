"""Count the rows of a run that are not `ok`, by route, to report them and to stop a route that keeps failing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rewardstack.cause import Cause
from rewardstack.score import Score
from rewardstack_cli.console import count_rows, say

MAX_CONSECUTIVE = 200
"""Number of consecutive failed rows of a route after which no more of its rows are sent."""

NOT_SENT = "not sent"
"""The `source` of the score of a row that was not sent."""

CHECK_HINT = "`rewardstack check` checks the services"

FUNCTION_CAUSES = (Cause.FUNCTION_RAISED, Cause.FUNCTION_TIMEOUT, Cause.FUNCTION_VALUE)
"""The causes of scores that failed because a reward function has an error or hangs."""


def to_correct(status: str, cause: Cause | None) -> str:
    """Return what has to be corrected before a row gets a score: `data`, `function` or `service`.

    Rows that were not sent need the `service`.
    """
    if status == "unscored":
        return "service" if cause is Cause.NOT_SENT else "data"
    return "function" if cause in FUNCTION_CAUSES else "service"


class Failures:
    """Counts the rows of a run whose status is not `ok`, and stops routes that keep failing."""

    def __init__(self) -> None:
        self._consecutive: Counter[str] = Counter()
        self._stopped: dict[str, str] = {}
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._first: dict[tuple[str, str, str], str] = {}

    def skipped_score(self, route: str) -> Score | None:
        """Return the score of a row that is not sent because its route is stopped; None if the row should be sent."""
        reason = self._stopped.get(route)
        return None if reason is None else Score.unscored(reason, NOT_SENT, cause=Cause.NOT_SENT)

    def count(self, route: str, score: Score) -> None:
        """Count the next row in the order of the file; stop its route after `MAX_CONSECUTIVE` consecutive failures.

        Only an `ok` row whose score is not cached resets the count of consecutive failed rows.

        Args:
            route: pattern of the row's route.
            score: score of the row.
        """
        if score.status == "ok":
            # Do not reset the count for a cached score, which does not show that the service works.
            self._consecutive[route] *= score.cached
            return
        key = route, score.status, (score.cause or Cause.OTHER).value
        self._counts[key] += 1
        self._first.setdefault(key, score.reason)
        if score.status != "failed":
            return
        self._consecutive[route] += 1
        if self._consecutive[route] == MAX_CONSECUTIVE and route not in self._stopped:
            cause = f"{MAX_CONSECUTIVE} consecutive rows failed; last error: {score.reason}"
            self._stopped[route] = f"not sent, because the route {route} is stopped: {cause}"
            say(f"{route}: {cause}; the remaining rows of this route are not sent")

    def lines(self) -> Iterator[str]:
        """Yield the number of rows and the first reason for each route, status other than `ok`, and cause."""
        for (route, status, cause), count in sorted(self._counts.items()):
            rows = count_rows(count)
            if cause == Cause.NOT_SENT:
                yield f"{route}: {rows} not sent, because {MAX_CONSECUTIVE} consecutive rows failed"
            else:
                yield f"{route}: {rows} {status}; first error: {self._first[route, status, cause]}"
