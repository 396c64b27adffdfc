"""What the load says of each phase, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.support.load.outcomes import RAISED, Known, Outcome
from tests.support.load.phases import Phase

COLUMNS = ("sent", "ok", "cached", "fallback", "unscored", "failed", "lost", "mis-scored")
BAD = ("fallback", "unscored", "failed", "lost", "mis-scored")
EXCUSED = ("fallback", "failed")
"""What may become of a sample in flight while the gateway itself, or the server that scores it, was down."""
REASONS = 5
"""Reasons that are shown of each phase."""


@dataclass
class Row:
    """The counts of one phase.

    Args:
        phase: its name.
        seconds: that it took.
        counts: by column.
        slowest: milliseconds that the slowest sample took.
        reasons: of what went wrong, and how often.
        unexcused: counts by column of what must not be.
    """

    phase: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    unexcused: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome, known: Sequence[Known], *, excused: bool) -> None:
        """Counts one sample.

        Args:
            outcome: what became of it.
            known: the samples of its lane.
            excused: whether it may have failed.
        """
        self.slowest = max(self.slowest, (outcome.ended - outcome.begun) * 1000)
        for column in _columns(outcome, known):
            self.counts[column] += 1
            if column in BAD:
                self.reasons[f"{outcome.lane}: {column}: {outcome.reason or outcome.value}"] += 1
                self.unexcused[column] += not (excused and column in EXCUSED)

    @property
    def faults(self) -> list[str]:
        """What must not be, in words."""
        return [f"{self.phase}: {count} {column}" for column, count in self.unexcused.items() if count]


def make(phases: Sequence[Phase], outcomes: Sequence[Outcome], known: Mapping[str, Sequence[Known]]) -> list[Row]:
    """The counts of each phase.

    A sample belongs to the phase in which it was sent, or to an excused phase during which it was in flight.

    Args:
        phases: in order.
        outcomes: of all samples.
        known: the samples of each lane.
    """
    rows = [Row(phase.name, phase.ended - phase.begun) for phase in phases]
    for outcome in outcomes:
        excusing = [at for at, phase in enumerate(phases) if phase.excuses(outcome.begun, outcome.ended)]
        began = [at for at, phase in enumerate(phases) if phase.begun <= outcome.begun]
        at = (excusing or began[-1:] or [0])[0]
        rows[at].add(outcome, known[outcome.lane], excused=bool(excusing))
    return rows


def together(rows: Sequence[Row]) -> Row:
    """The counts of the same phase at several times, as one.

    Args:
        rows: at least one.
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
    """The counts as text."""
    width = max(len(row.phase) for row in rows) + 1
    lines = [f"{'phase':<{width}}{'s':>5}" + "".join(f"{name:>11}" for name in COLUMNS) + f"{'slowest ms':>12}"]
    for row in rows:
        counts = "".join(f"{row.counts[name]:>11,}" for name in COLUMNS)
        lines.append(f"{row.phase:<{width}}{row.seconds:>5.0f}{counts}{row.slowest:>12,.0f}")
        lines += [f"    {count} x {reason[:160]}" for reason, count in row.reasons.most_common(REASONS)]
    return "\n".join(lines)
