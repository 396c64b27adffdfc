"""Show the progress of a run: counts by status in a progress bar, and a summary at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from rewardstack.cause import Cause
from rewardstack.score import STATUSES
from rewardstack_cli.console import count_rows, err
from rewardstack_cli.failures import to_correct

NOT_ALL_SCORED = 3
"""Exit status if at least one row has no score."""
MISSING_STATUSES = ("unscored", "failed")
"""The statuses of rows without a score."""
STYLES = {"ok": "green", "fallback": "yellow", "unscored": "yellow", "failed": "red"}


@dataclass
class Tally:
    """Counts of scored rows.

    Args:
        statuses: number of rows by status.
        cached: number of rows whose value comes from a cache.
        total: sum of the values of rows with the status `ok` or `fallback`.
        to_correct: number of rows without a score by what has to be corrected (`failures.to_correct`).
    """

    statuses: Counter[str] = field(default_factory=Counter)
    cached: int = 0
    total: float = 0.0
    to_correct: Counter[str] = field(default_factory=Counter)

    def add(self, value: float | None, status: str, cached: bool, cause: str | None = None, **_: Any) -> None:
        """Count a row, given the fields of its score (`rows.score_fields`)."""
        self._count_status(status, cause, 1)
        self.cached += bool(cached)
        if status in ("ok", "fallback"):
            self.total += value or 0.0

    def remove_missing(self, status: str, cause: str | None = None, **_: Any) -> None:
        """Remove a row without a score from the counts, given the score fields of its line in the output file."""
        self._count_status(status, cause, -1)

    def _count_status(self, status: str, cause: str | None, change: int) -> None:
        self.statuses[status] += change
        if status in MISSING_STATUSES:
            self.to_correct[to_correct(status, Cause.read(cause))] += change

    @property
    def rows(self) -> int:
        """Number of counted rows."""
        return self.statuses.total()

    @property
    def without_score(self) -> int:
        """Number of rows that are `unscored` or `failed`."""
        return sum(self.statuses[status] for status in MISSING_STATUSES)

    def counts(self) -> Text:
        """Return the counts by status, such as "ok 97, failed 3", each in the color of the status."""
        statuses = [status for status in STATUSES if self.statuses[status]]
        return Text(", ").join(Text(f"{status} {self.statuses[status]:,}", STYLES[status]) for status in statuses)

    def summary(self) -> Text:
        """Return a line with the counts, the share of cached rows and the mean value."""
        scored = self.rows - self.without_score
        parts = [self.counts()] if self.rows else []
        if self.cached:
            parts.append(Text(f"cached {self.cached / self.rows:.0%}"))
        if scored:
            parts.append(Text(f"mean value {self.total / scored:.4f}"))
        return Text("; ").join([Text(count_rows(self.rows)), *parts])


def format_rate(rows: float, seconds: float) -> str:
    """Format rows per second; empty if the rate is unknown or 0."""
    speed = rows / seconds if seconds > 0 else 0.0
    return f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.2g}/s" if speed > 0 else ""


class _RateColumn(ProgressColumn):
    """The average rate since the start of the run; rich's own column shows the rate of the last updates."""

    def render(self, task: Task) -> Text:
        return Text(format_rate(task.completed - task.fields["before"], task.finished_time or task.elapsed or 0.0))


class _CountsColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        tally: Any = task.fields["tally"]
        return Text().join([tally.counts()])


def progress_bar() -> Progress:
    """Return a progress bar on stderr.

    Its task needs the fields `tally` (a `Tally`) and `before` (the number of rows that an earlier run has done). If
    stderr is not a terminal, only the final state is shown.
    """
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        _RateColumn(),
        _CountsColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=err)
