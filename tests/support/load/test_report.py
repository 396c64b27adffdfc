"""Test the report of a load: what is counted in which phase, and what is excused."""

from __future__ import annotations

import pytest

from rewardstack import Request
from tests.support.load import report
from tests.support.load.outcomes import RAISED, Known, Outcome
from tests.support.load.phases import Phase

KNOWN = {"judge": [Known(Request("judge", "right"), 0.7, 0.05)]}
PHASES = [
    Phase("nothing", 0.0, 0.0, 10.0, excused=False),
    Phase("restart rules", 10.0, 13.0, 20.0, excused=False),
    Phase("restart gateway", 20.0, 22.0, 30.0, excused=True),
]


def outcome(status: str, begun: float, ended: float, value: float | None = 0.7) -> Outcome:
    """Return an outcome of the only sample in `KNOWN`."""
    return Outcome("judge", 0, begun, ended, status, value, reason="because")


def faults(*outcomes: Outcome) -> list[str]:
    """Return the faults that the report finds in outcomes."""
    return [fault for row in report.make(PHASES, outcomes, KNOWN) for fault in row.faults]


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (outcome("ok", 11, 12, 0.74), []),
        (outcome("ok", 11, 12, 0.76), ["restart rules: 1 mis-scored"]),
        (outcome("ok", 11, 12, None), ["restart rules: 1 mis-scored"]),
        (outcome("failed", 11, 12, 0.0), ["restart rules: 1 failed"]),
        (outcome("fallback", 1, 2), ["nothing: 1 fallback"]),
        (outcome("unscored", 21, 22), ["restart gateway: 1 unscored"]),
        (outcome(RAISED, 11, 12, None), ["restart rules: 1 lost"]),
        # In flight during the gateway's restart: a failure is excused, a wrong value is not.
        (outcome("failed", 15, 21, 0.0), []),
        (outcome("fallback", 21, 23), []),
        (outcome(RAISED, 21, 23, None), ["restart gateway: 1 lost"]),
        (outcome("ok", 21, 23, 0.0), ["restart gateway: 1 mis-scored"]),
        # Sent long after the restart of the gateway.
        (outcome("failed", 27, 29, 0.0), ["restart gateway: 1 failed"]),
    ],
)
def test_verdict(one: Outcome, expected: list[str]) -> None:
    """A wrong value is always a fault; a failure is one unless the gateway restarted meanwhile."""
    assert expected == faults(one)


def test_together() -> None:
    """The counts and faults of two runs of a phase are added."""
    lost, late = outcome(RAISED, 1, 2, None), outcome("ok", 1, 6)
    first, second = (report.make(PHASES, [one], KNOWN)[0] for one in (lost, late))

    both = report.together([first, second])

    assert (both.phase, both.seconds, both.slowest) == ("nothing", 20.0, 5000.0)
    assert (both.counts["sent"], both.faults) == (2, ["nothing: 1 lost"])
