"""Run benchmarks one after another, and write their figures as JSON, as an HTML page and as an SVG picture.

    make bench
    make bench t="rules cache" note="beside other work" publish=1

If a benchmark fails, the page shows the end of its output, and the others still run. The exit status is 1 if any
benchmark failed, for example because it missed a bound.
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
    """Run the benchmarks named on the command line (default: all) and return the exit status."""
    arguments = _arguments()
    todo = [benchmark(name) for name in arguments.names or SMALL]
    status = run_all([(one, one.small if arguments.smoke else []) for one in todo], arguments.note, RESULTS)
    if arguments.publish:
        shutil.copy(RESULTS / "bench.svg", PUBLISHED)
        print(f"==> {PUBLISHED}")
    return status


def run_all(todo: Sequence[tuple[Benchmark, list[str]]], note: str, folder: Path) -> int:
    """Run benchmarks one after another; write the report after each, so that an interrupted run keeps its results.

    Args:
        todo: benchmarks to run, each with its command-line arguments.
        note: text that the page shows next to the machine.
        folder: output folder; created if missing.

    Returns:
        1 if any benchmark failed, else 0.
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
    """Write a report as JSON, HTML and SVG."""
    (folder / "bench.json").write_text(f"{json.dumps(report, indent=2)}\n", encoding="utf-8")
    (folder / "bench.html").write_text(page(report), encoding="utf-8")
    (folder / "bench.svg").write_text(picture(report), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(SMALL)} (default: all)")
    parser.add_argument("--smoke", action="store_true", help="use arguments that make each benchmark quick")
    parser.add_argument("--publish", action="store_true", help=f"copy the picture to docs/{PUBLISHED.name}")
    parser.add_argument("--note", default="", help="a note on the machine for the page, for example what else ran")
    arguments = parser.parse_args()
    if unknown := {*arguments.names} - {*SMALL}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(SMALL)}")
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
