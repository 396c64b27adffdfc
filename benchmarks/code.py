"""Programs a second that a reward server runs, compared to a bare loop that starts an interpreter for each test.

    python benchmarks/code.py

Starts a reward server with CODE=on and no result cache, and sends it `code` samples over HTTP: different programs with
20 tests each, which give standard input and compare standard output. Every score must be 1. The baseline is
`subprocess.run([python, "-c", program], input=…)` on the same number of cores; half of its programs run before the
server runs, and half after. While the server runs programs, one client scores `math` samples one by one, and the 99th
percentile of their latency is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.reward_server import Server, reward_server

TESTS = 20
CORES = len(os.sched_getaffinity(0))
IN_FLIGHT = 4
"""Concurrent requests per core, one program each."""
PROGRAM = """import sys
def main():
    n, *values = map(int, sys.stdin.read().split())
    best = [0] * (n + 1)
    for at, value in enumerate(values, 1):
        best[at] = max(best[at - 1], best[at - 2] + value if at > 1 else value)
    print(best[n])  # {mark}
main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--baseline-programs", type=int, default=40)
    arguments = parser.parse_args()
    half = arguments.baseline_programs // 2
    seconds = _bare(half)
    with reward_server(CODE="on") as server:
        _scored(server, 2 * CORES)
        latencies, taken = _with_mathematics(server, arguments.programs)
    seconds += _bare(half)
    ours, theirs = arguments.programs / taken, 2 * half / seconds
    middle, tail = statistics.median(latencies), statistics.quantiles(latencies, n=100)[98]
    print(f"{ours:.1f} programs/s of {TESTS} tests on {CORES} cores; a bare loop {theirs:.1f}: {ours / theirs:.1f}x")
    print(f"math beside it, of {len(latencies)}: median {middle * 1000:.0f} ms, p99 {tail * 1000:.0f} ms")
    figure("programs", ours, "/s", against="a bare subprocess loop", ratio=ours / theirs, least_ratio=2.5)
    figure("math beside programs, p99", tail * 1000, "ms", most=250)


def _tests() -> tuple[list[str], list[str]]:
    inputs = [
        f"{size}\n{' '.join(str(value * size % 97) for value in range(size))}\n" for size in range(10, 10 + TESTS)
    ]
    return inputs, [_answer(text) for text in inputs]


def _answer(text: str) -> str:
    _, *values = map(int, text.split())
    with_last, without = 0, 0
    for value in values:
        with_last, without = without + value, max(with_last, without)
    return f"{max(with_last, without)}\n"


def _bare(programs: int) -> float:
    """Return the seconds that this many programs take on all cores, with a new process for each test."""
    inputs, outputs = _tests()

    def run(mark: int) -> None:
        program = PROGRAM.format(mark=mark)
        for given, expected in zip(inputs, outputs, strict=True):
            done = subprocess.run(
                [sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True
            )
            assert done.stdout == expected

    started = time.monotonic()
    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(run, range(programs)))
    return time.monotonic() - started


def _ask(server: Server, item: dict[str, Any]) -> dict[str, Any]:
    body = json.dumps({"items": [item]}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/v1/score", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as reply:
        score: dict[str, Any] = json.load(reply)["scores"][0]
    return score


def _scored(server: Server, programs: int) -> float:
    """Return the seconds that the server takes to score this many programs."""
    inputs, outputs = _tests()

    def score(mark: int) -> None:
        response = f"```python\n{PROGRAM.format(mark=f'{programs}-{mark}')}```"
        item = {"data_source": "code", "solution_str": response, "ground_truth": {"inputs": inputs, "outputs": outputs}}
        found = _ask(server, item)
        assert found["value"] == 1.0, found

    started = time.monotonic()
    with ThreadPoolExecutor(IN_FLIGHT * CORES) as pool:
        list(pool.map(score, range(programs)))
    return time.monotonic() - started


def _with_mathematics(server: Server, programs: int) -> tuple[list[float], float]:
    """Return the latencies of `math` samples sent while the programs run, and the seconds that the programs take."""
    latencies: list[float] = []
    is_over = threading.Event()

    def verify() -> None:
        at = 0
        while not is_over.is_set():
            at += 1
            solution = f"The answer is $\\boxed{{\\frac{{{at}}}{{{at + 7}}}}}$."
            item = {"data_source": "math", "solution_str": solution, "ground_truth": f"{at}/{at + 7}"}
            started = time.monotonic()
            assert _ask(server, item)["value"] == 1.0
            latencies.append(time.monotonic() - started)
            time.sleep(0.02)

    asking = threading.Thread(target=verify)
    asking.start()
    try:
        return latencies, _scored(server, programs)
    finally:
        is_over.set()
        asking.join()


if __name__ == "__main__":
    main()
