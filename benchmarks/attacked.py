"""Latency of ordinary samples while the stack is under attack.

    python benchmarks/attacked.py

Starts its own stack without containers (requires Redis and nginx) and sends single requests with generated samples
(`mix`) through the gateway. Measures the latency of these requests without an attack, then during each attack: clients
that send one byte every few seconds, bodies of 60 MB that would take gigabytes when parsed, jobs that fill the queue,
and a suspended supervisor of the verifier processes. During the last attack, the samples need no verifier process,
because others would wait for a new supervisor. The exit status is 1 if a 99th percentile exceeds one second, or if a
score differs from the sample's label.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.latency import Measurement, measure
from benchmarks.mix import Sample, make_samples
from tests.soak.stack import SoakStack, running
from tests.support.dribble import Dribble

ALLOWED = 1.0
"""Bound for the 99th percentile, in seconds."""
WARMING_SECONDS = 5.0
SENDERS = 4
"""Concurrent clients that send large bodies or jobs."""
DRIBBLING = 300
"""Number of slow uploads."""
BYTE_SECONDS = 5.0
"""Seconds between two bytes of a slow upload."""
BOMB = b'{"items": [' + b"[]," * 20_000_000 + b"[]]}"
"""A body of 60 MB: 20 million empty lists."""
JOB_ITEMS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of each attack (%(default)g)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    samples = make_samples(10_000_000, arguments.seed)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as stack:
        _measured(stack, samples, WARMING_SECONDS)
        found = [_measured(stack, samples, arguments.seconds)]
        _report("alone", found)
        for name, attack in ATTACKS.items():
            with attack(stack):
                found.append(_measured(stack, samples, arguments.seconds))
            _report(name, found)
        plain = (one for one in samples if one.outcome == "same form")
        stack.verifiers().suspend()
        found.append(_measured(stack, plain, arguments.seconds))
        _report("a stopped supervisor", found)
    wrong = sum(one.wrong for one in found)
    print(f"wrong scores {wrong}")
    figure("wrong scores", wrong, most=0, note=f"of {sum(len(one.seconds) for one in found):,}")
    if wrong or any(one.percentile(99) > ALLOWED for one in found):
        raise SystemExit(1)


def _measured(stack: SoakStack, samples: Iterator[Sample], seconds: float) -> Measurement:
    end = time.monotonic() + seconds
    return measure(_connection(stack), samples, lambda: time.monotonic() < end)


def _report(title: str, found: Sequence[Measurement]) -> None:
    """Print and record the last measurement; compare it to the first, which ran without an attack."""
    *others, last = found
    print(last.line(title), flush=True)
    last.record(title, alone=others[0] if others else None, most=ALLOWED)


def _connection(stack: SoakStack) -> HTTPConnection:
    return HTTPConnection(*_address(stack), timeout=120)


def _address(stack: SoakStack) -> tuple[str, int]:
    url = urlsplit(stack.url)
    return str(url.hostname), int(url.port or 80)


@contextmanager
def _slow_uploads(stack: SoakStack) -> Iterator[None]:
    """Run clients that send jobs and batches one byte at a time and reconnect when they are cut off."""
    heads = [
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 1000000\r\n\r\n".encode()
        for path, kind in (("/jobs", "application/x-ndjson"), ("/v1/score", "application/json"))
    ]
    with Dribble(_address(stack), heads, DRIBBLING, BYTE_SECONDS):
        yield


@contextmanager
def _repeatedly(send: Callable[[], object]) -> Iterator[None]:
    """Call `send` repeatedly from several threads until the block ends."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            with suppress(OSError, HTTPException):  # the server refused the body before all of it was sent
                send()

    with ThreadPoolExecutor(SENDERS) as pool:
        futures = [pool.submit(repeat) for _ in range(SENDERS)]
        try:
            yield
        finally:
            done.set()
        for one in futures:
            one.result()


def _bombs(stack: SoakStack) -> AbstractContextManager[None]:
    return _repeatedly(lambda: _post(stack, "/v1/score", "application/json", BOMB))


def _jobs(stack: SoakStack) -> AbstractContextManager[None]:
    rows = [
        {"data_source": "math", "solution_str": one.response, "ground_truth": one.reference}
        for one in make_samples(JOB_ITEMS, 7)
    ]
    body = "".join(f"{json.dumps(one)}\n" for one in rows).encode()
    return _repeatedly(lambda: _post(stack, "/jobs", "application/x-ndjson", body))


def _post(stack: SoakStack, path: str, kind: str, body: bytes) -> int:
    connection = _connection(stack)
    try:
        connection.request("POST", path, body, {"Content-Type": kind})
        reply = connection.getresponse()
        reply.read()
        return reply.status
    finally:
        connection.close()


ATTACKS = {"300 slow uploads": _slow_uploads, "bodies of 60 MB": _bombs, "jobs without end": _jobs}

if __name__ == "__main__":
    main()
