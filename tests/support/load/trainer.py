"""`python -m tests.support.load.trainer LANES`: score the samples of the file LANES steadily, like a trainer.

It prints a line for each sample when its score arrives. When its standard input ends, it stops sending, waits for the
samples in flight, and prints how many samples it has sent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rewardstack import RewardstackError, ascore
from tests.support.load.lanes import Lane, read
from tests.support.load.outcomes import RAISED, Outcome

SENT = "sent "
"""Prefix of the last line."""


class Trainer:
    """Sends the samples of several lanes concurrently.

    Args:
        lanes: the lanes.
    """

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.sent = 0
        self._lanes = lanes
        self._stop = asyncio.Event()
        self._calls: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send until standard input ends; return when all samples have an outcome."""
        waiting = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        waiting.add_done_callback(lambda _: self._stop.set())
        await asyncio.gather(*(self._send_steadily(lane) for lane in self._lanes))
        await asyncio.gather(*self._calls)

    async def _send_steadily(self, lane: Lane) -> None:
        """Send each batch when it is due, without waiting for the previous one."""
        start, batch = time.monotonic(), 0
        while not self._stop.is_set():
            indexes = [(batch * lane.batch + at) % len(lane.samples) for at in range(lane.batch)]
            call = asyncio.create_task(self._send(lane, indexes))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            batch += 1
            await self._pause(start + batch * lane.every - time.monotonic())

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), max(0.0, seconds))
        except asyncio.TimeoutError:
            return

    async def _send(self, lane: Lane, indexes: Sequence[int]) -> None:
        self.sent += len(indexes)
        begun = time.monotonic()
        try:
            scores = await ascore([lane.samples[index].request for index in indexes])
        except RewardstackError as error:
            reason = f"{type(error).__name__}: {error}"
            outcomes = [Outcome(lane.name, at, begun, time.monotonic(), RAISED, reason=reason) for at in indexes]
        else:
            outcomes = [
                Outcome(lane.name, at, begun, time.monotonic(), one.status, one.value, one.cached, one.reason)
                for at, one in zip(indexes, scores, strict=True)
            ]
        print("\n".join(outcome.to_line() for outcome in outcomes), flush=True)


async def _main(path: str) -> None:
    trainer = Trainer(read(Path(path)))
    await trainer.run()
    print(f"{SENT}{trainer.sent}", flush=True)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
