"""Cost of ten viewers of the status page for a reward server under load.

    python benchmarks/status_page.py

Clients continuously send batches of `math` to a real reward server with two workers. Periods without viewers alternate
with periods with ten viewers, each of which polls every five seconds, as the page does. Prints the rates, their ratio,
and the share of the machine's CPU time that the viewers take when nothing else uses the server. Other work on the
machine distorts this share less than the rates. The exit status is 1 if the share is 1 % or more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.load import BATCH, Batch, batches
from benchmarks.mix import make_samples
from benchmarks.reward_server import Server, reward_server

VIEWERS = 10
EVERY = 5.0
"""Seconds between two requests of a viewer, as in `http/page/base.js`."""
CLIENTS = 4
BATCHES = 500
"""Number of different batches, which are sent repeatedly; the server has no result cache."""
ROUTES = ("gsm8k", "math_verifier", "exact_match", "multiple_choice", "length", "example_math", "example_coding")
ALLOWED = 0.01


class Load:
    """Clients that send batches until `stop`; `done` counts the replies.

    Args:
        server: server to send to.
        some: batches to send repeatedly.
    """

    def __init__(self, server: Server, some: list[Batch]) -> None:
        self.done = 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._todo = cycle(some)
        self._threads = [threading.Thread(target=self._send, args=(server.connect(),)) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop sending and wait for the outstanding replies."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _send(self, connection: HTTPConnection) -> None:
        while not self._ended.is_set():
            with self._lock:
                body = next(self._todo).body
            ask(connection, "POST", "/v1/score", body)
            with self._lock:
                self.done += 1


class Viewers:
    """Ten viewers, each on its own connection, whose polls are evenly spread over `EVERY` seconds.

    Args:
        server: server whose status they poll.
    """

    def __init__(self, server: Server) -> None:
        self._connections = [server.connect() for _ in range(VIEWERS)]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def stop(self) -> None:
        """Stop polling."""
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        for connection in cycle(self._connections):
            if self._ended.wait(EVERY / VIEWERS):
                return
            ask(connection, "GET", "/v1/status")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a window")
    parser.add_argument("--windows", type=int, default=6, help="number of windows of each kind")
    parser.add_argument("--share-seconds", type=float, default=15.0, help="length of the unloaded measurement")
    arguments = parser.parse_args()
    some = list(batches(make_samples(BATCH * BATCHES, 1)))
    with reward_server() as server:
        fill(server)
        alone, viewed = rates(server, some, arguments.windows, arguments.seconds)
        share = processor_share(server, arguments.share_seconds)
    print(f"nobody looks    {statistics.median(alone):9,.0f} /s, from {min(alone):,.0f} to {max(alone):,.0f}")
    print(f"{VIEWERS} viewers      {statistics.median(viewed):9,.0f} /s, from {min(viewed):,.0f} to {max(viewed):,.0f}")
    ratios = [after / before for before, after in zip(alone, viewed, strict=True)]
    ratio = statistics.median(ratios)
    print(f"ratio {ratio:.3f}, of neighbouring windows from {min(ratios):.3f} to {max(ratios):.3f}")
    print(f"the viewers take {100 * share:.2f} % of the CPU time")
    figure("samples with ten viewers", statistics.median(viewed), "/s", against="nobody looks", ratio=ratio)
    figure("CPU share of ten viewers", 100 * share, "%", most=100 * ALLOWED)
    if share >= ALLOWED:
        raise SystemExit(1)


def fill(server: Server) -> None:
    """Score a sample on each of `ROUTES`, so that the status page has content."""
    items = [{"data_source": one, "solution_str": "#### 1", "ground_truth": "1"} for one in ROUTES]
    ask(server.connect(), "POST", "/v1/score", json.dumps({"items": items}).encode())


def rates(server: Server, some: list[Batch], windows: int, seconds: float) -> tuple[list[float], list[float]]:
    """Measure samples a second in alternating windows; return the rates without and with viewers.

    Args:
        server: server to send to.
        some: batches to send repeatedly.
        windows: number of windows of each kind.
        seconds: length of a window.
    """
    load = Load(server, some)
    alone, viewed = [], []
    try:
        rate(load, seconds)  # warm-up: the first batches are slower
        for _ in range(windows):
            alone.append(rate(load, seconds))
            viewers = Viewers(server)
            try:
                viewed.append(rate(load, seconds))
            finally:
                viewers.stop()
    finally:
        load.stop()
    return alone, viewed


def rate(load: Load, seconds: float) -> float:
    """Return the number of samples scored per second over this many seconds."""
    before, started = load.done, time.perf_counter()
    time.sleep(seconds)
    return BATCH * (load.done - before) / (time.perf_counter() - started)


def processor_share(server: Server, seconds: float) -> float:
    """Return the share (0 to 1) of the machine's CPU time that the viewers cost a server without other load."""
    idle = busy(server, seconds)
    viewers = Viewers(server)
    try:
        return (busy(server, seconds) - idle) / (os.cpu_count() or 1)
    finally:
        viewers.stop()


def busy(server: Server, seconds: float) -> float:
    """Return the average number of cores that the server keeps busy over this many seconds."""
    before, started = server.processor_seconds(), time.perf_counter()
    time.sleep(seconds)
    return (server.processor_seconds() - before) / (time.perf_counter() - started)


def ask(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
    """Send a request and read the whole reply.

    Raises:
        SystemExit: the status is not 200.
    """
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    reply = connection.getresponse()
    content = reply.read()
    if reply.status != 200:
        raise SystemExit(f"{path}: HTTP status {reply.status}: {content[:200]!r}")


if __name__ == "__main__":
    main()
