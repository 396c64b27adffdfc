"""`make nightly`: run the heavy proofs one after another and print one table with target, result and seconds.

`targets.json` lists the make targets with the folders that they prove. `--changed` runs the smoke variants of those
whose folders changed since the commit in `.ci/nightly-base`, up to a budget of estimated seconds, and names the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / ".ci/nightly-base"
"""Name of the commit at which the whole of `make nightly` last passed."""
SMOKE_BUDGET = 300
"""Estimated seconds that the smoke variants of one CI run may take together."""
OWN_VARIABLES = ("t", "changed", "MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS")
"""What `make` hands on of the call of `make nightly`; the targets have a `t` with another meaning."""
ROW = "{:<14} {:<10} {:>8}"


class Target(NamedTuple):
    """A heavy make target.

    Args:
        target: its name.
        proves: what holds when it passes.
        folders: paths whose changes call for it.
        smoke: arguments of its smoke variant; None if it has none.
        smoke_seconds: estimate for the smoke variant on two cores.
    """

    target: str
    proves: str
    folders: list[str]
    smoke: str | None = None
    smoke_seconds: int = 0


def load() -> list[Target]:
    """Return the targets in the order in which they run."""
    return [Target(**row) for row in json.loads((Path(__file__).parent / "targets.json").read_text())]


def main() -> int:
    """Run the chosen targets and return the exit status."""
    names = [target.target for target in load()]
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(names)}")
    parser.add_argument("--changed", action="store_true", help="smoke variants of targets whose folders changed")
    options = parser.parse_args()
    if unknown := sorted(set(options.targets) - set(names)):
        parser.error(f"unknown target {', '.join(unknown)}; choose from {', '.join(names)}")
    if not options.changed:
        return run([[target.target] for target in load() if target.target in (options.targets or names)])
    chosen, left_out = choose_smoke(load(), changed_paths())
    status = run([[target.target, *(target.smoke or "").split()] for target in chosen])
    for target, reason in left_out:
        print(f"left out: make {target.target} ({reason})")
    return status


def run(commands: Iterable[Sequence[str]]) -> int:
    """Run make with each list of arguments, print the table of results, and return 1 if one failed, else 0."""
    rows = []
    environment = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    for command in commands:
        print(f"==> make {' '.join(command)}", flush=True)
        start = time.monotonic()
        status = subprocess.run(["make", *command], cwd=ROOT, env=environment, check=False).returncode
        rows.append((" ".join(command), "passed" if status == 0 else f"failed ({status})", time.monotonic() - start))
    print("\n" + ROW.format("target", "result", "seconds"))
    for name, result, seconds in rows:
        print(ROW.format(name, result, f"{seconds:.0f}"), flush=True)
    return int(any(result != "passed" for _, result, _ in rows))


def changed_paths() -> list[str]:
    """Return the paths that differ from the base commit, committed or not."""
    command = ["git", "diff", "--name-only", BASE.read_text().split()[0]]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()


def choose_smoke(
    targets: Sequence[Target], changed: Sequence[str], budget: int = SMOKE_BUDGET
) -> tuple[list[Target], list[tuple[Target, str]]]:
    """Return the targets whose smoke variants run, and the other affected targets, each with the reason.

    Args:
        targets: in order of priority.
        changed: paths of changed files.
        budget: estimated seconds for all.
    """
    chosen: list[Target] = []
    left_out = []
    for target in targets:
        if not any(Path(path).is_relative_to(folder) for path in changed for folder in target.folders):
            continue
        if target.smoke is None:
            left_out.append((target, "it has no smoke variant"))
        elif sum(one.smoke_seconds for one in chosen) + target.smoke_seconds > budget:
            left_out.append((target, f"no time left of {budget} s"))
        else:
            chosen.append(target)
    return chosen, left_out


if __name__ == "__main__":
    sys.exit(main())
