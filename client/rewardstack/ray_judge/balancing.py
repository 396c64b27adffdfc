"""Whose turn it is among the engines: the one with the least to do; another where that is lost.

An actor that was lost restarts, and until it has, its calls raise at once: it is left out until it answers again.
https://docs.ray.io/en/latest/ray-core/fault_tolerance/actors.html
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from typing import Protocol

from rewardstack.errors import RewardstackError, UnreachableError

MOST_WAITING = 2048
"""Requests for each engine that the service holds; further ones are refused for now, as by a server that is full."""
LOOK = 0.5
"""Seconds between looks at an engine that was lost."""

Answer = tuple[int, bytes]
"""The status that HTTP would have, and the body."""

log = logging.getLogger(__name__)


class Engine(Protocol):
    """What is asked: see `engines.RemoteEngine`."""

    name: str

    async def request(self, method: str, path: str, body: bytes) -> Answer:
        """Its answer; raises UnreachableError where it is lost."""

    async def ping(self) -> int:
        """Its process; raises UnreachableError where it is lost."""


class FrozenRewardInferenceClient:
    """Engines that all have the same frozen weights, so that any of them can be asked anything.

    Args:
        engines: to ask.
        most_waiting: requests for each of them that are held.
    """

    def __init__(self, engines: Sequence[Engine], most_waiting: int = MOST_WAITING) -> None:
        self._engines = list(engines)
        self._most = most_waiting * len(engines)
        self._in_flight = dict.fromkeys(self._engines, 0)
        self._lost: dict[Engine, str] = {}
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether any engine takes requests."""
        return len(self._lost) < len(self._engines)

    def state(self) -> list[dict[str, object]]:
        """Of each engine its name, its requests in flight, and why it is lost; empty where it is not."""
        return [
            {"name": one.name, "in_flight": self._in_flight[one], "lost": self._lost.get(one, "")}
            for one in self._engines
        ]

    async def request(self, method: str, path: str, body: bytes, seconds: float) -> Answer:
        """The answer of the engine with the least to do, of another one where it is lost meanwhile.

        Args:
            method: `GET` or `POST`.
            path: such as `/v1/chat/completions`.
            body: JSON, or nothing.
            seconds: that the caller waits.

        Returns:
            Status and body; 429 where too many requests wait, 503 where no engine is up, 504 where none answered in
            time, each with its reason.
        """
        if sum(self._in_flight.values()) >= self._most:
            return refusal(429, f"{self._most} requests are in flight already, which is all that the engines hold")
        until = time.monotonic() + seconds
        while up := [one for one in self._engines if one not in self._lost]:
            engine = min(up, key=self._in_flight.__getitem__)
            self._in_flight[engine] += 1
            try:
                return await asyncio.wait_for(engine.request(method, path, body), until - time.monotonic())
            except UnreachableError as error:
                self._miss(engine, error)
            except asyncio.TimeoutError:
                return refusal(504, f"{engine.name} has not answered within the {seconds:g} s that the caller waits")
            finally:
                self._in_flight[engine] -= 1
        return refusal(503, f"no engine is up; {'; '.join(self._lost.values())}")

    def _miss(self, engine: Engine, error: UnreachableError) -> None:
        """Leaves an engine out until it answers again."""
        if engine in self._lost:
            return
        self._lost[engine] = str(error)
        log.warning("%s is lost and restarts; the others are asked: %s", engine.name, error)
        watch = asyncio.get_running_loop().create_task(self._watch(engine))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)

    async def _watch(self, engine: Engine) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                process = await engine.ping()
            except RewardstackError as error:
                self._lost[engine] = str(error)
            else:
                del self._lost[engine]
                log.warning("%s is up again, as process %d", engine.name, process)
                return


def refusal(status: int, why: str) -> Answer:
    """What a server would answer in words of its own.

    Args:
        status: of HTTP.
        why: the reason.
    """
    return status, json.dumps({"error": why}).encode()
