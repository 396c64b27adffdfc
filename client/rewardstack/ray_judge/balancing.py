"""Load balancing over engines: each request goes to the least loaded engine, and to the next one if that is lost.

Ray restarts the actor of a lost engine. Until then, calls to the actor raise immediately, so the engine gets no
requests until it answers a ping.
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
"""Maximum number of requests in flight per engine; more requests are refused with status 429."""
LOOK = 0.5
"""Seconds between pings of a lost engine."""

Answer = tuple[int, bytes]
"""HTTP status and body."""

log = logging.getLogger(__name__)


class Engine(Protocol):
    """The methods of an engine that the balancer calls; see `engines.RemoteEngine`."""

    name: str

    async def request(self, method: str, path: str, body: bytes) -> Answer:
        """Return the engine's answer; raise UnreachableError if the engine is lost."""

    async def ping(self) -> int:
        """Return the engine's process ID; raise UnreachableError if the engine is lost."""


class FrozenRewardInferenceClient:
    """Balances requests over engines with the same frozen weights.

    Args:
        engines: the engines.
        most_waiting: maximum number of requests in flight per engine; the limit applies to the sum over all engines.
    """

    def __init__(self, engines: Sequence[Engine], most_waiting: int = MOST_WAITING) -> None:
        self._engines = list(engines)
        self._most = most_waiting * len(engines)
        self._in_flight = dict.fromkeys(self._engines, 0)
        self._lost: dict[Engine, str] = {}
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether at least one engine is up."""
        return len(self._lost) < len(self._engines)

    def state(self) -> list[dict[str, object]]:
        """Return the `name`, the requests `in_flight` and the error (`lost`) of each engine; empty if it is up."""
        return [
            {"name": one.name, "in_flight": self._in_flight[one], "lost": self._lost.get(one, "")}
            for one in self._engines
        ]

    async def request(self, method: str, path: str, body: bytes, seconds: float) -> Answer:
        """Send a request to the least loaded engine, and to the next one if that is lost; return the answer.

        Args:
            method: `GET` or `POST`.
            path: a path of vLLM's API, such as `/v1/chat/completions`.
            body: a JSON document, or empty.
            seconds: timeout of the request, in seconds.

        Returns:
            Status and body. The status is 429 if too many requests are in flight, 503 if no engine is up, and 504 on
            timeout; the body then has the reason.
        """
        if sum(self._in_flight.values()) >= self._most:
            return refusal(429, f"{self._most} requests are in flight, which is the limit; retry later")
        until = time.monotonic() + seconds
        while up := [one for one in self._engines if one not in self._lost]:
            engine = min(up, key=self._in_flight.__getitem__)
            self._in_flight[engine] += 1
            try:
                return await asyncio.wait_for(engine.request(method, path, body), until - time.monotonic())
            except UnreachableError as error:
                self._miss(engine, error)
            except asyncio.TimeoutError:
                return refusal(504, f"no answer from {engine.name} within the caller's timeout of {seconds:g} s")
            finally:
                self._in_flight[engine] -= 1
        return refusal(503, f"no engine is up; {'; '.join(self._lost.values())}")

    def _miss(self, engine: Engine, error: UnreachableError) -> None:
        """Exclude an engine until it answers a ping."""
        if engine in self._lost:
            return
        self._lost[engine] = str(error)
        log.warning("%s is lost and restarting; requests go to the other engines: %s", engine.name, error)
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
                log.warning("%s is up again (pid %d)", engine.name, process)
                return


def refusal(status: int, why: str) -> Answer:
    """Return the answer to a request that no engine served.

    Args:
        status: the HTTP status.
        why: the reason, for the body.
    """
    return status, json.dumps({"error": why}).encode()
