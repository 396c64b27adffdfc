"""Runs benchmarks one after another, and writes their figures as JSON, as a page and as a picture.

    make bench
    make bench t="rules cache" note="beside other work" publish=1

A benchmark that fails does not lose the figures of the others: the page says what it said last. Exits with 1 where one
failed, as where a bound is not kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.catalogue import FOLDER, SMALL, Benchmark, benchmark
from benchmarks.machine import commit, machine
from benchmarks.page import page
from benchmarks.picture import picture
from benchmarks.running import run

RESULTS = FOLDER / "results"
PUBLISHED = FOLDER.parent / "docs" / "benchmarks.svg"


def main() -> int:
    """Runs what was asked for; the exit status."""
    arguments = _arguments()
    todo = [benchmark(name) for name in arguments.names or SMALL]
    status = run_all([(one, one.small if arguments.smoke else []) for one in todo], arguments.note, RESULTS)
    if arguments.publish:
        shutil.copy(RESULTS / "bench.svg", PUBLISHED)
        print(f"==> {PUBLISHED}")
    return status


def run_all(todo: Sequence[tuple[Benchmark, list[str]]], note: str, folder: Path) -> int:
    """Runs benchmarks one after another, and writes what there is after each: an interrupted run keeps it.

    Args:
        todo: what is run, with the arguments of its command.
        note: what the page is to say beside the machine.
        folder: where it is written; made if it is not there.

    Returns:
        1 where one of them failed, else 0.
    """
    folder.mkdir(parents=True, exist_ok=True)
    when = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    report: dict[str, Any] = {"when": when, "commit": commit(), "machine": machine(), "note": note, "runs": []}
    for one, arguments in todo:
        report["runs"].append(run(one, arguments))
        write(report, folder)
    print(f"==> {folder / 'bench.html'}")
    return int(any(one["status"] for one in report["runs"]))


def write(report: Mapping[str, Any], folder: Path) -> None:
    """Writes a report as JSON, page and picture."""
    (folder / "bench.json").write_text(f"{json.dumps(report, indent=2)}\n", encoding="utf-8")
    (folder / "bench.html").write_text(page(report), encoding="utf-8")
    (folder / "bench.svg").write_text(picture(report), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SMALL)} (default: all)")
    parser.add_argument("--smoke", action="store_true", help="with arguments that make each of them quick")
    parser.add_argument("--publish", action="store_true", help=f"copy the picture to docs/{PUBLISHED.name}")
    parser.add_argument("--note", default="", help="what the page is to say of the machine, for example what else ran")
    arguments = parser.parse_args()
    if unknown := {*arguments.names} - {*SMALL}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(SMALL)}")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
