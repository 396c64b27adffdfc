"""`make soak`: a native stack of its own for an hour under load, hostile requests and faults, which must not grow.

In rounds of five minutes trainers score steadily (mathematics in batches and one by one, and a judge that says the
same to all), jobs are submitted and read to the end, hostile requests of every kind come in, and faults are made in
turn. Each round ends with a burst of hostile requests, after which every process, also one that is young, holds what
its largest requests have needed; then with all at rest and the services measured. What they take at the end is compared
with what they took after the first round. Exits with 1 if memory, open files or processes are more than a tenth off, a
sample was lost, failed or had a wrong score, or a request was answered badly, except during faults that excuse it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.mix import make_samples
from benchmarks.slow_judge import VERDICT
from rewardstack import Request
from tests.soak import usage
from tests.soak.background import Hostile, Jobs, meanwhile
from tests.soak.faults import plan
from tests.soak.stack import SoakStack, running
from tests.soak.usage import MIB, TOTAL, Usages
from tests.support.load import lanes, report
from tests.support.load.lanes import Lane
from tests.support.load.load import steady
from tests.support.load.outcomes import Known
from tests.support.load.phases import disturb
from tests.support.load.report import Row

ROUND_MINUTES = 5
FAULTS = 180.0
"""Seconds of a round's faults; it ends at rest, for which there is a minute."""
BURST = 60.0
"""Seconds of a round in which hostile requests come as fast as they can."""
JUDGED = 1000
"""Samples for the judge; they come round again as well."""
SINGLE = 2000
"""Samples that are sent alone: few enough that the first round has seen all of them, and their verdicts are known."""


class Size(NamedTuple):
    """How long everything lasts.

    Args:
        rounds: of all faults.
        seconds: of a round's faults, at least.
        burst: seconds of hostile requests alone, at the end of a round.
        after: seconds that a phase lasts at least after its fault.
        stopped: seconds for which a process is stopped, where nothing replaces it before.
        memory: whether it is held to its bound: within minutes it only shows how caches fill.
    """

    rounds: int
    seconds: float
    burst: float
    after: float
    stopped: float
    memory: bool


FULL = Size(rounds=12, seconds=FAULTS, burst=BURST, after=5.0, stopped=15.0, memory=True)
SMOKE = Size(rounds=2, seconds=12.0, burst=2.0, after=0.5, stopped=1.0, memory=False)
"""For CI."""


def main() -> int:
    """Soaks a stack, prints what became of it; the exit status."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="in rounds of five (%(default)g)")
    parser.add_argument(
        "--smoke", action="store_true", help="two rounds in about two minutes, memory not held to its bound"
    )
    options = parser.parse_args()
    rounds = max(2, round(options.minutes / ROUND_MINUTES))
    size = SMOKE if options.smoke else FULL._replace(rounds=rounds)
    # So that the stack is gone also where this is stopped from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print("==> starting the stack", flush=True)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as stack:
        faults = list(soak(stack, size))
    print("VERDICT: " + ("; ".join(faults) if faults else "nothing grew, no sample lost, none mis-scored"), flush=True)
    return 1 if faults else 0


def soak(stack: SoakStack, size: Size) -> Iterator[str]:
    """What must not be, in words; prints the counts.

    Args:
        stack: a healthy one.
        size: how long.
    """
    hostile, jobs = Hostile(stack.url), Jobs(stack.url)
    some = [lanes.rules("batches", 0.5, 16), lanes.rules("single", 0.1, 1, seed=2, count=SINGLE), _judged()]
    rounds: list[list[Row]] = []
    measured: list[Usages] = []
    for number in range(1, size.rounds + 1):
        rows, faults = _round(stack, size, some, hostile, jobs)
        yield from faults
        rounds.append(rows)
        hostile.burst(size.burst)
        yield from hostile.faults([])
        stack.supervisor.reload_gateway()  # closes the connections that it keeps for later
        measured.append(usage.settled(stack))
        total = measured[-1][TOTAL]
        print(
            f"round {number}: {total.processes} processes, {total.files} files, {total.memory / MIB:.0f} MiB",
            flush=True,
        )
    rows = [report.together(same) for same in zip(*rounds, strict=True)]
    print(report.table(rows))
    print(f"{jobs.samples:,} samples of jobs; hostile requests by status: {dict(sorted(hostile.counts.items()))}")
    print(usage.table(measured[0], measured[-1]), flush=True)
    yield from (fault for row in rows for fault in row.faults)
    yield from jobs.faults
    yield from usage.faults(measured[0], measured[-1], memory=size.memory)


def _round(
    stack: SoakStack, size: Size, some: Sequence[Lane], hostile: Hostile, jobs: Jobs
) -> tuple[list[Row], list[str]]:
    """Every fault once under load: the counts of each phase, and what must not be."""
    with (
        meanwhile(hostile.work),
        meanwhile(jobs.work),
        steady(some, {"server": {"REWARD_SERVER_URL": stack.url}}) as load,
    ):
        phases = list(disturb(plan(stack, size.seconds, size.stopped), size.after))
        load.end()
    rows = report.make(phases, load.outcomes, {lane.name: lane.samples for lane in some})
    return rows, [*load.faults, *hostile.faults(phases)]


def _judged() -> Lane:
    """Samples for a judge that says the same to all."""
    known = [
        Known(Request("llm_judge_remote_soak", one.response, one.reference), VERDICT)
        for one in make_samples(JUDGED, seed=3)
    ]
    return Lane("judge", "server", 0.5, 4, known)


if __name__ == "__main__":
    sys.exit(main())
