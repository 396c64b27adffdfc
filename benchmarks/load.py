"""Group generated samples into batches, and send them to a reward server from several clients."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from itertools import islice
from typing import NamedTuple

from benchmarks.mix import Sample
from benchmarks.reward_server import Server

BATCH = 64


class Batch(NamedTuple):
    """A request body and its samples."""

    body: bytes
    samples: list[Sample]


class Reply(NamedTuple):
    """A batch and the body of the server's reply to it."""

    batch: Batch
    content: bytes


def batches(samples: Iterator[Sample]) -> Iterator[Batch]:
    """Group samples into requests of `BATCH` samples."""
    while some := list(islice(samples, BATCH)):
        rows = [
            {"data_source": "math", "solution_str": one.response, "ground_truth": one.reference, "extra_info": None}
            for one in some
        ]
        yield Batch(json.dumps({"items": rows}).encode(), some)


def send(server: Server, some: Sequence[Batch], clients: int) -> tuple[float, list[Reply]]:
    """Send batches from several clients; return the seconds until the last reply, and the replies in any order.

    Raises:
        SystemExit: a batch got no reply, or one without status 200.
    """
    replies: list[Reply] = []
    todo, lock = iter(some), threading.Lock()
    threads = [threading.Thread(target=_client, args=(server.connect(), todo, lock, replies)) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    if len(replies) != len(some):
        raise SystemExit(f"{len(some) - len(replies)} requests of {len(some)} have no reply")
    return seconds, replies


def _client(connection: HTTPConnection, todo: Iterator[Batch], lock: threading.Lock, replies: list[Reply]) -> None:
    while True:
        with lock:
            batch = next(todo, None)
        if batch is None:
            connection.close()
            return
        connection.request("POST", "/v1/score", batch.body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise SystemExit(f"HTTP status {reply.status}: {content[:200]!r}")
        replies.append(Reply(batch, content))
