"""How long single requests take that come one after another, as an evaluation or a small trainer sends them."""

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
    """What became of them.

    Args:
        seconds: that each took which got a score, in ascending order.
        wrong: how many did not get their label.
        refused: how many were asked to come again later (503 with Retry-After).
    """

    seconds: list[float]
    wrong: int
    refused: int

    def line(self, title: str) -> str:
        """For the reader."""
        p50, p99 = (1000 * self.percentile(share) for share in (50, 99))
        return (
            f"{title:<28} {len(self.seconds):>7,} requests   p50 {p50:>7.1f} ms   p99 {p99:>7.1f} ms   "
            f"refused for now {self.refused}"
        )

    def record(self, title: str, *, alone: Measurement | None = None, most: float | None = None) -> None:
        """Adds the 99th percentile to the figures.

        Args:
            title: what ran beside the requests.
            alone: what it is compared to.
            most: its bound, in seconds.
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
        """So many per cent took at most these seconds."""
        return self.seconds[min(len(self.seconds) - 1, len(self.seconds) * share // 100)]


def measure(connection: HTTPConnection, samples: Iterator[Sample], go_on: Callable[[], bool]) -> Measurement:
    """Sends samples of mathematics one by one.

    Args:
        connection: to a reward server; it is closed afterwards.
        samples: whose labels are known.
        go_on: asked before each.
    """
    seconds, wrong, refused = [], 0, 0
    while go_on():
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
    """A sample of `math` in the server's own protocol."""
    return {"data_source": "math", "solution_str": response, "ground_truth": reference}


def post(connection: HTTPConnection, rows: list[dict[str, str]]) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a batch."""
    connection.request("POST", "/v1/score", json.dumps({"items": rows}), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    said: dict[str, Any] = json.load(reply)
    if reply.status not in (200, 503) or (reply.status == 503 and not reply.headers["Retry-After"]):
        raise RuntimeError(f"{reply.status}: {said}")
    return reply.status, said
