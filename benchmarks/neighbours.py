"""How long ordinary samples take while eight run that pass every bound and end only at the deadline.

    python benchmarks/neighbours.py

Sends single requests with samples of the mix (`mix`), first alone, then while a batch of eight slow samples runs:
integrals without a closed form and powers of sums that take minutes to multiply out. Exits with 1 where the 99th
percentile beside the slow batch is over 0.25 s, or a label is not met.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.mix import Sample, make_samples
from benchmarks.reward_server import Server, reward_server

ALLOWED = 0.25
PAUSE = 0.005
"""Seconds between a reply and the next request."""
INTEGRAL = "\\int_0^{{\\infty}} \\frac{{\\sin(x^{{7}}+{at}x)}}{{x^{{3}}+1}} dx"
SLOW = [
    *((INTEGRAL.format(at=at), f"\\frac{{\\pi}}{{{at}}}") for at in range(3, 7)),
    *((f"(x+y+z+w+{at})^{{60}}", f"(x+y+z+w+{at + 1})^{{60}}") for at in range(1, 5)),
]
"""Answers and references."""


class Measurement(NamedTuple):
    """Seconds that single requests took, in ascending order, and how many samples did not get their label."""

    seconds: list[float]
    wrong: int

    def line(self, title: str) -> str:
        """For the reader."""
        p50, p99 = (1000 * self.percentile(share) for share in (50, 99))
        return f"{title:<28} {len(self.seconds):>7,} requests   p50 {p50:>7.1f} ms   p99 {p99:>7.1f} ms"

    def percentile(self, share: int) -> float:
        """So many per cent took at most these seconds."""
        return self.seconds[min(len(self.seconds) - 1, len(self.seconds) * share // 100)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="how many are sent without the slow batch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    samples = make_samples(1_000_000, arguments.seed)
    with reward_server() as server:
        _measure(server, samples, _for(200))
        alone = _measure(server, samples, _for(arguments.requests))
        slow: list[dict[str, Any]] = []
        batch = threading.Thread(target=lambda: slow.extend(_post(server.connect(), _slow_rows())))
        started = time.perf_counter()
        batch.start()
        beside = _measure(server, samples, batch.is_alive)
        lasted = time.perf_counter() - started
    print(alone.line("alone"))
    print(beside.line("beside eight slow samples"))
    print(f"the slow samples took {lasted:.1f} s: {', '.join(sorted({one['reason'] for one in slow}))}")
    print(f"labels not met {alone.wrong + beside.wrong}")
    if beside.percentile(99) > ALLOWED or alone.wrong + beside.wrong:
        raise SystemExit(1)


def _for(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is not None


def _measure(server: Server, samples: Iterator[Sample], go_on: Callable[[], bool]) -> Measurement:
    connection = server.connect()
    seconds, wrong = [], 0
    while go_on():
        sample = next(samples)
        started = time.perf_counter()
        [score] = _post(connection, [_row(sample.response, sample.reference)])
        seconds.append(time.perf_counter() - started)
        wrong += (score["status"], score["value"]) != ("ok", float(sample.right))
        time.sleep(PAUSE)
    connection.close()
    return Measurement(sorted(seconds), wrong)


def _slow_rows() -> list[dict[str, str]]:
    return [_row(f"Thus \\boxed{{{answer}}}.", reference) for answer, reference in SLOW]


def _row(response: str, reference: str) -> dict[str, str]:
    return {"data_source": "math", "solution_str": response, "ground_truth": reference}


def _post(connection: HTTPConnection, rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    connection.request("POST", "/v1/score", json.dumps({"items": rows}), {"Content-Type": "application/json"})
    scores: list[dict[str, Any]] = json.load(connection.getresponse())["scores"]
    return scores


if __name__ == "__main__":
    main()
