"""The background load beside the trainers: hostile requests, one after the other, and jobs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, cycle
from typing import Any

from benchmarks.mix import Sample, make_samples
from rewardstack import RewardstackError
from rewardstack.settings import Settings
from rewardstack_cli.jobs.server import JobServer
from tests.soak.faults import QUIET
from tests.support.hostile.attack import complaint, send
from tests.support.hostile.kinds import KINDS, make
from tests.support.load.phases import EXCUSED_SECONDS, Phase

PAUSE = 0.1
"""Seconds between two hostile requests."""
TOGETHER = 16
"""Threads of a burst of them."""
JOB_ITEMS = 300
JOB_PAUSE = 2.0
"""Seconds between two jobs."""
JOB_TIMEOUT = "120"
"""Seconds for which a job's sender waits for a gateway or a queue that is away."""
POLL = 0.5
JOB_SECONDS = 300.0
"""In which a job must end, whatever is done to the stack meanwhile."""


@contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Has something go on in a thread, which is told to end and waited for afterwards.

    Args:
        work: returns soon once the event is set; what it raises is raised here.
    """
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(work, stop)
        try:
            yield
        finally:
            stop.set()
    going_on.result()


class Hostile:
    """Sends hostile requests of all kinds in turn.

    Args:
        url: of the gateway.
    """

    def __init__(self, url: str) -> None:
        self.counts: Counter[int] = Counter()
        self._url = url
        self._next = zip(cycle(KINDS), count())
        self._complaints: list[tuple[float, float, str]] = []

    def work(self, stop: threading.Event) -> None:
        """Sends requests until `stop` is set."""
        while not stop.wait(PAUSE):
            self._send(*next(self._next))

    def burst(self, seconds: float) -> None:
        """Sends as many as `TOGETHER` threads can, the same ones each time, so that what servers keep for their largest
        requests is there.

        Args:
            seconds: that it lasts.
        """
        end, requests = time.monotonic() + seconds, zip(cycle(KINDS), count())
        with ThreadPoolExecutor(TOGETHER) as pool:
            for done in [pool.submit(self._send_until, end, requests) for _ in range(TOGETHER)]:
                done.result()

    def faults(self, phases: Sequence[Phase]) -> Iterator[str]:
        """What was wrong, since this was last asked, with answers outside of the faults.

        Args:
            phases: that have been in this time.
        """
        complaints, self._complaints = self._complaints, []
        faults = [(phase.begun, phase.done + EXCUSED_SECONDS) for phase in phases if phase.name != QUIET]
        for begun, ended, wrong in complaints:
            if not any(begun < done and ended > start for start, done in faults):
                yield f"a hostile request: {wrong}"

    def _send_until(self, end: float, requests: Iterator[tuple[str, int]]) -> None:
        while time.monotonic() < end:
            self._send(*next(requests))

    def _send(self, kind: str, number: int) -> None:
        attack, begun = make(kind, 0, number), time.monotonic()
        try:
            reply = send(self._url, attack)
        except OSError as error:
            wrong, status = f"{type(error).__name__}: {error}", 0
        else:
            wrong, status = complaint(attack, reply), reply.status if reply else 0
        self.counts[status] += 1
        if wrong:
            self._complaints.append((begun, time.monotonic(), f"{wrong}: {str(attack)[:300]}"))


class Jobs:
    """Submits jobs, and reads their results to the end.

    Args:
        url: of the gateway.
    """

    def __init__(self, url: str) -> None:
        self.faults: list[str] = []
        self.samples = 0
        self._settings = Settings.from_env({"REWARD_SERVER_URL": url, "REWARD_SERVER_TIMEOUT": JOB_TIMEOUT})
        self._seeds = count(1000)

    def work(self, stop: threading.Event) -> None:
        """One job after the other, until it is told to end and the last one has ended."""
        asyncio.run(self._submit_all(stop))

    async def _submit_all(self, stop: threading.Event) -> None:
        async with JobServer(self._settings) as server:
            while not stop.is_set():
                await asyncio.sleep(JOB_PAUSE)
                samples = list(make_samples(JOB_ITEMS, next(self._seeds)))
                try:
                    lines = await self._results(server, samples)
                except RewardstackError as error:
                    self.faults.append(f"a job: {error}")
                    continue
                self.samples += len(samples)
                found = [(line["status"], line["value"]) for line in lines]
                if found != [("ok", float(one.right)) for one in samples]:
                    self.faults.append(f"a job: {_difference(found, samples)}")

    async def _results(self, server: JobServer, samples: Sequence[Sample]) -> list[dict[str, Any]]:
        rows = [{"data_source": "math", "solution_str": one.response, "ground_truth": one.reference} for one in samples]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        job_id = await server.submit(lines, uuid.uuid4().hex)
        end = time.monotonic() + JOB_SECONDS
        while (state := await server.state(job_id))["status"] in ("queued", "running"):
            if time.monotonic() > end:
                raise RewardstackError(f"it has not ended in {JOB_SECONDS:g} s: {state}")
            await asyncio.sleep(POLL)
        return await server.results(job_id, 0)


def _difference(found: Sequence[tuple[str, float]], samples: Sequence[Sample]) -> str:
    wrong = Counter(
        f"{status} {value} for {float(one.right)}"
        for (status, value), one in zip(found, samples, strict=False)
        if (status, value) != ("ok", float(one.right))
    )
    return f"{len(found)} results of {len(samples)}; {dict(wrong)}"
