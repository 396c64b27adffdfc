"""`make machines`: a table of how README's two commands end on clean machines and on broken ones.

Exits with 1 unless every situation is as expected. A situation that this machine cannot have is named, and no fault.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from services.up.compose import engine
from tests.machines import container, situation
from tests.machines.situation import ESCAPES, Situation, Step

LAST_LINES = 15
ROW = "{:<28} {:<44} {:>4} {:>6}  {}"


def main() -> int:
    """Runs the situations that are asked for, one after the other, and prints a row a step; the exit status."""
    parser = argparse.ArgumentParser(prog="make machines", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a situation, or the first letters of several")
    parser.add_argument("--smoke", action="store_true", help="those for CI only, of which none may be left out")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write there what each situation's steps showed")
    given = parser.parse_args()
    if lack := _lacks():
        print(f"ERROR: {lack}", file=sys.stderr)
        return 1
    try:
        chosen = situation.choose(situation.load(), given.names, given.smoke)
    except ValueError as error:
        parser.error(str(error))
    # So that the container is gone also where this is stopped from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(ROW.format("situation", "typed", "exit", "s", "seen"), flush=True)
    outcomes = {one.name: run(one, given.output) for one in chosen}
    print(situation.verdict(outcomes))
    faults = {False, None} if given.smoke else {False}
    return 0 if faults.isdisjoint(outcomes.values()) else 1


def _lacks() -> str:
    """What this machine has not that every situation needs; empty where nothing is missing."""
    found, reason = engine.find()
    if not found:
        return f"no container engine: {reason}"
    if not shutil.which("debootstrap") or os.geteuid() != 0:
        return "bare machines are made with debootstrap, as root: apt-get install debootstrap"
    return ""


def run(given: Situation, output: Path | None = None) -> bool | None:
    """Run one situation and print its rows; whether it was as expected, None where this machine cannot have it.

    Args:
        given: what is run.
        output: a folder for what the steps showed; None: it is not kept.
    """
    if lack := container.lacks(given):
        print(ROW.format(given.name, "", "-", "-", f"left out: {lack}"), flush=True)
        return None
    try:
        with container.running(given) as machine:
            return all(_typed(machine, given, step, output) for step in given.steps)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(ROW.format(given.name, "", "-", "-", f"NOT AS EXPECTED: {error}"), flush=True)
        return False


def _typed(machine: container.Machine, given: Situation, step: Step, output: Path | None) -> bool:
    status, seconds, shown = machine.type(step)
    fault = situation.fault(step, status, shown)
    seen = f"NOT AS EXPECTED: {fault}" if fault else "; ".join(step.see) or "as expected"
    line = step.type + (f" ^C at {step.interrupt!r}" if step.interrupt else "")
    print(ROW.format(given.name, line, "-" if status is None else status, f"{seconds:.1f}", seen), flush=True)
    text = ESCAPES.sub("", shown).replace("\r\n", "\n").rstrip()
    if fault:
        print("\n".join(f"    | {last}" for last in text.splitlines()[-LAST_LINES:]), flush=True)
    if output:
        output.mkdir(parents=True, exist_ok=True)
        with (output / f"{given.name}.txt").open("a") as file:
            file.write(f"$ {line}\n{text}\n[exit {status}, {seconds:.1f} s] {seen}\n\n")
    return not fault


if __name__ == "__main__":
    sys.exit(main())
