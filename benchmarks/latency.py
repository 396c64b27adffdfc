"""Measure the latency of single requests sent one after another, as an evaluation or a small trainer sends them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any, NamedTuple

from benchmarks.figures import figure
from benchmarks.mix import Sample

PAUSE = 0.005
"""Seconds between a reply and the next request."""


class Measurement(NamedTuple):
    """Latencies and outcomes of the requests.

    Args:
        seconds: latencies of the requests that got a score, in ascending order.
        wrong: number of samples whose score differs from their label.
        refused: number of requests that got a 503 with Retry-After.
    """

    seconds: list[float]
    wrong: int
    refused: int

    def line(self, title: str) -> str:
        """Return a line with the count, the median and the 99th percentile."""
        p50, p99 = (1000 * self.percentile(share) for share in (50, 99))
        return (
            f"{title:<28} {len(self.seconds):>7,} requests   p50 {p50:>7.1f} ms   p99 {p99:>7.1f} ms   "
            f"503 with Retry-After {self.refused}"
        )

    def record(self, title: str, *, alone: Measurement | None = None, most: float | None = None) -> None:
        """Record the 99th percentile as a figure.

        Args:
            title: what ran at the same time as the requests.
            alone: measurement to compare to.
            most: upper bound in seconds.
        """
        p50, p99 = (1000 * self.percentile(share) for share in (50, 99))
        figure(
            f"99th percentile, {title}",
            p99,
            "ms",
            against=alone and "the 99th percentile alone",
            ratio=alone and self.percentile(99) / alone.percentile(99),
            most=most and 1000 * most,
            note=f"p50 {p50:.1f} ms, {len(self.seconds):,} requests",
        )

    def percentile(self, share: int) -> float:
        """Return a percentile of the latencies in seconds; `share` is in percent."""
        return self.seconds[min(len(self.seconds) - 1, len(self.seconds) * share // 100)]


def measure(connection: HTTPConnection, samples: Iterator[Sample], is_running: Callable[[], bool]) -> Measurement:
    """Send samples of `math` one by one and measure each request.

    Args:
        connection: connection to a reward server; it is closed at the end.
        samples: samples with known labels.
        is_running: called before each request; the measurement ends when it returns False.
    """
    seconds, wrong, refused = [], 0, 0
    while is_running():
        sample = next(samples)
        started = time.perf_counter()
        status, reply = post(connection, [row(sample.response, sample.reference)])
        if status == 503:
            refused += 1
        else:
            seconds.append(time.perf_counter() - started)
            [score] = reply["scores"]
            wrong += (score["status"], score["value"]) != ("ok", float(sample.right))
        time.sleep(PAUSE)
    connection.close()
    return Measurement(sorted(seconds), wrong, refused)


def row(response: str, reference: str) -> dict[str, str]:
    """Return a sample of `math` as an item of a `/v1/score` request."""
    return {"data_source": "math", "solution_str": response, "ground_truth": reference}


def post(connection: HTTPConnection, rows: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    """Post a batch; return the HTTP status (200 or 503) and the parsed body."""
    connection.request("POST", "/v1/score", json.dumps({"items": rows}), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    content: dict[str, Any] = json.load(reply)
    if reply.status not in (200, 503) or (reply.status == 503 and not reply.headers["Retry-After"]):
        raise RuntimeError(f"{reply.status}: {content}")
    return reply.status, content
