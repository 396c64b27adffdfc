"""Count the outcomes of a load by phase, and find those that are not allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.load.outcomes import RAISED, Known, Outcome
from tests.support.load.phases import Phase

COLUMNS = ("sent", "ok", "cached", "fallback", "unscored", "failed", "lost", "mis-scored")
BAD = ("fallback", "unscored", "failed", "lost", "mis-scored")
EXCUSED = ("fallback", "failed")
"""Statuses that are allowed for samples in flight during an excused phase, such as a restart of the gateway."""
REASONS = 5
"""Maximum number of reasons to print for each phase."""


@dataclass
class Row:
    """The counts of one phase.

    Args:
        phase: name of the phase.
        seconds: duration of the phase.
        counts: number of samples by column (`COLUMNS`).
        slowest: milliseconds that the slowest sample took.
        reasons: how often each reason for a bad outcome (`BAD`) occurred.
        unexcused: number of bad outcomes that are not excused, by column.
    """

    phase: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    unexcused: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome, known: Sequence[Known], *, excused: bool) -> None:
        """Count one sample.

        Args:
            outcome: outcome of the sample.
            known: samples of its lane.
            excused: whether the sample may have failed.
        """
        self.slowest = max(self.slowest, (outcome.ended - outcome.begun) * 1000)
        for column in _columns(outcome, known):
            self.counts[column] += 1
            if column in BAD:
                self.reasons[f"{outcome.lane}: {column}: {outcome.reason or outcome.value}"] += 1
                self.unexcused[column] += not (excused and column in EXCUSED)

    @property
    def faults(self) -> list[str]:
        """Descriptions of the bad outcomes that are not excused."""
        return [f"{self.phase}: {count} {column}" for column, count in self.unexcused.items() if count]


def make(phases: Sequence[Phase], outcomes: Sequence[Outcome], known: Mapping[str, Sequence[Known]]) -> list[Row]:
    """Return the counts of each phase.

    A sample counts in the first excused phase during which it was in flight, else in the phase in which it was sent.

    Args:
        phases: the phases, in order.
        outcomes: outcomes of all samples.
        known: samples of each lane, by its name.
    """
    rows = [Row(phase.name, phase.ended - phase.begun) for phase in phases]
    for outcome in outcomes:
        excusing = [at for at, phase in enumerate(phases) if phase.excuses(outcome.begun, outcome.ended)]
        began = [at for at, phase in enumerate(phases) if phase.begun <= outcome.begun]
        at = (excusing or began[-1:] or [0])[0]
        rows[at].add(outcome, known[outcome.lane], excused=bool(excusing))
    return rows


def together(rows: Sequence[Row]) -> Row:
    """Return the sum of the counts of several runs of the same phase.

    Args:
        rows: one row for each run, at least one.
    """
    return Row(
        rows[0].phase,
        sum(row.seconds for row in rows),
        sum((row.counts for row in rows), Counter()),
        max(row.slowest for row in rows),
        sum((row.reasons for row in rows), Counter()),
        sum((row.unexcused for row in rows), Counter()),
    )


def _columns(outcome: Outcome, known: Sequence[Known]) -> list[str]:
    named = "lost" if outcome.status == RAISED else outcome.status
    extra = ["cached"] if outcome.cached else []
    return ["sent", named, *extra, *(["mis-scored"] if outcome.is_wrong(known) else [])]


def table(rows: Sequence[Row]) -> str:
    """Format the counts as a text table, with the most frequent reasons below each row."""
    width = max(len(row.phase) for row in rows) + 1
    lines = [f"{'phase':<{width}}{'s':>5}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'slowest ms':>12}"]
    for row in rows:
        counts = "".join(f"{row.counts[name]:>11,}" for name in COLUMNS)
        lines.append(f"{row.phase:<{width}}{row.seconds:>5.0f}{counts}{row.slowest:>12,.0f}")
        lines += [f"    {count} x {reason[:160]}" for reason, count in row.reasons.most_common(REASONS)]
    return "\n".join(lines)
