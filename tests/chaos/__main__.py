"""`make chaos`: a stack in containers of its own is disturbed while trainers score, then while it works at a job.

Trainers score by every route, steadily. The right score of each sample is known in advance: for rules from how the
sample is made, for the judge and the embedding server from a run on an idle stack. Exits with 1 unless every sample
came back with its score, and none failed or fell back except while the gateway itself restarted.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from typing import NamedTuple

from tests.chaos import job, storm
from tests.support.compose import ComposeStack, missing, running
from tests.support.load import report


class Size(NamedTuple):
    """How much is asked of the stack.

    Args:
        seconds: of load at least.
        replicas: of the judge, to which it is scaled up from two, one of which is killed.
        samples: different ones for each model server.
        items: of the job.
        workers: that score it, each of which is killed.
    """

    seconds: float
    replicas: int
    samples: int
    items: int
    workers: int


FULL = Size(seconds=120.0, replicas=3, samples=48, items=20_000, workers=3)
SMOKE = Size(seconds=20.0, replicas=2, samples=16, items=12_000, workers=2)
"""For CI."""


def main() -> int:
    """Starts the stack, disturbs it, prints what became of all; the exit status."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help=f"{SMOKE.seconds:g} s and {SMOKE.items:,} items only")
    size = SMOKE if parser.parse_args().smoke else FULL
    if lacks := missing():
        print(f"error: {lacks}", file=sys.stderr)
        return 1
    # So that the stack is gone also where this is stopped from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    faults = list(chaos(size))
    print("VERDICT: " + ("; ".join(faults) if faults else "no sample lost, none mis-scored, none failed"), flush=True)
    return 1 if faults else 0


def chaos(size: Size) -> Iterator[str]:
    """What must not be, in words; prints the counts.

    Args:
        size: how much is asked of the stack.
    """
    print("==> starting the stack", flush=True)
    with running(JUDGE_REPLICAS="2", **storm.SETTINGS) as stack:
        print(f"==> a load over all routes for {size.seconds:g} s and more", flush=True)
        yield from _load(stack, size)
        print(f"==> a job of {size.items:,} samples", flush=True)
        yield from _job(stack, size)


def _load(stack: ComposeStack, size: Size) -> list[str]:
    weather = storm.rage(stack, size.seconds, size.replicas, size.samples)
    print(report.table(weather.rows))
    asked = ", ".join(f"{count} after {name!r}" for name, count in weather.judges.items())
    print(f"replicas of the judge that the gateway asked: {asked}", flush=True)
    return weather.faults


def _job(stack: ComposeStack, size: Size) -> list[str]:
    outcome = job.run(stack, size.items, size.workers)
    print("\n".join(outcome.kills))
    print("chunks:", ", ".join(f"{name} {count:,}" for name, count in outcome.counts.items()))
    print(f"{size.items:,} samples in {outcome.seconds:.1f} s", flush=True)
    return outcome.faults


if __name__ == "__main__":
    sys.exit(main())
