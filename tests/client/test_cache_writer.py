"""Pending writes to Redis delay nobody, are bounded, and arrive even if the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
import redis as redis_client

from rewardstack.cache import writer
from rewardstack.cache.writer import MAX_BATCH, Writer
from tests.client.conftest import Script
from tests.support.servers import FaultServer, Redis

EXITS_EARLY = """
    from rewardstack import Request, score
    from rewardstack.cache import link, writer
    from rewardstack.core import event_loop
    writer.WINDOW = 3600.0
    writer.FLUSH_TIMEOUT = event_loop.CLOSING_TIME = link.TIMEOUT = 60.0  # a busy machine is slow to write
    score([Request("math", f"late {at}", "1") for at in range(50)])
"""
FORKS = (
    EXITS_EARLY
    + """
    import os, sys
    child = os.fork()
    if child:
        sys.exit(os.waitpid(child, 0)[1])
    score([Request("math", f"of the child {at}", "1") for at in range(50)])
"""
)


class Sink:
    """Takes values as a Redis would; `works` says whether it can, and `go` when it does."""

    def __init__(self, most: int = 1000) -> None:
        self.works, self.go = True, asyncio.Event()
        self.written: list[str] = []
        self.dropped = 0
        self.writer: Writer[int] = Writer(self._write, most, self._drop)

    async def _write(self, entries: Sequence[tuple[str, int]]) -> bool:
        await self.go.wait()
        if self.works:
            self.written += [key for key, _ in entries]
        return self.works

    def _drop(self, count: int) -> None:
        self.dropped += count


def entries(count: int, label: str = "") -> list[tuple[str, int]]:
    """Values under different keys."""
    return [(f"{label}{at}", at) for at in range(count)]


async def test_all_is_written_in_order() -> None:
    """What was put arrives, each value once, also what comes while others are being written."""
    sink = Sink()
    sink.go.set()
    for label in "abc":
        sink.writer.put(entries(MAX_BATCH + 7, label))
        await asyncio.sleep(0)
    await sink.writer.flush()
    assert [key for label in "abc" for key, _ in entries(MAX_BATCH + 7, label)] == sink.written
    assert 0 == sink.dropped


async def test_too_many_are_dropped_and_counted() -> None:
    """Beyond the bound nothing waits: what is too much is dropped, and said."""
    sink = Sink(most=10)
    sink.writer.put(entries(25))
    sink.writer.put(entries(5, "more "))
    assert 20 == sink.dropped
    sink.go.set()
    await sink.writer.flush()
    assert 10 == len(sink.written)


async def test_what_is_not_taken_is_dropped_and_counted() -> None:
    """A Redis that refuses costs what waits, and no more than that."""
    sink = Sink()
    sink.go.set()
    sink.works = False
    sink.writer.put(entries(MAX_BATCH + 1))
    await sink.writer.flush()
    assert (MAX_BATCH + 1, []) == (sink.dropped, sink.written)
    sink.works = True
    sink.writer.put(entries(3))
    await sink.writer.flush()
    assert ["0", "1", "2"] == sink.written


async def test_the_end_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Redis hangs the end comes all the same, and what is lost is counted."""
    monkeypatch.setattr(writer, "FLUSH_TIMEOUT", 0.1)  # expires: nothing lets the sink go
    sink = Sink()
    sink.writer.put(entries(5))
    await asyncio.wait_for(sink.writer.flush(), 60)
    assert 5 == sink.dropped


@pytest.mark.parametrize(("script", "written"), [(EXITS_EARLY, 50), (FORKS, 100)], ids=["ends", "forks"])
def test_written_at_the_end(server: FaultServer, redis: Redis, run_script: Script, script: str, written: int) -> None:
    """A process that ends right after a score has written it, and so has the child of one whose values still waited."""
    run_script(script)
    assert written == redis_client.Redis.from_url(redis.url).dbsize()
