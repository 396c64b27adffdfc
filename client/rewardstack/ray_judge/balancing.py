"""Balance requests over engines: each request goes to the least loaded engine that is up.

If an engine is lost (its Ray actor has died) during a request, the request goes to another engine. Ray restarts the
actor. Until it is up, all calls to the actor fail immediately. Therefore, a lost engine gets no requests until it has
answered a ping.
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

MAX_IN_FLIGHT = 2048
"""Default of `max_in_flight`."""
CHECK_INTERVAL = 0.5
"""Seconds between pings of a lost engine."""

Response = tuple[int, bytes]
"""HTTP status and body."""

log = logging.getLogger(__name__)


class Engine(Protocol):
    """The methods of an engine that the balancer calls; see `engines.RemoteEngine`."""

    name: str

    async def request(self, method: str, path: str, body: bytes) -> Response:
        """Return the engine's response; raise UnreachableError if the engine is lost."""

    async def ping(self) -> int:
        """Return the engine's process ID; raise UnreachableError if the engine is lost."""


class FrozenRewardInferenceClient:
    """Balances requests over engines with the same frozen weights.

    Args:
        engines: the engines.
        max_in_flight: maximum number of requests in flight per engine, on average. With N engines, requests are refused
            with status 429 while N times this number are in flight in total. A single engine may have more than
            `max_in_flight`.
    """

    def __init__(self, engines: Sequence[Engine], max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._engines = list(engines)
        self._max_in_flight = max_in_flight * len(engines)
        self._in_flight = dict.fromkeys(self._engines, 0)
        self._lost: dict[Engine, str] = {}
        self._ping_tasks: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether at least one engine is up."""
        return len(self._lost) < len(self._engines)

    def state(self) -> list[dict[str, object]]:
        """Return a dict for each engine: its `name`, the number of requests `in_flight`, and the error `lost`.

        `lost` is empty if the engine is up.
        """
        return [
            {"name": one.name, "in_flight": self._in_flight[one], "lost": self._lost.get(one, "")}
            for one in self._engines
        ]

    async def request(self, method: str, path: str, body: bytes, seconds: float) -> Response:
        """Send a request to the least loaded engine, or to another engine if that one is lost; return the response.

        Args:
            method: `GET` or `POST`.
            path: a path of vLLM's API, such as `/v1/chat/completions`.
            body: a JSON document, or empty.
            seconds: timeout of the request, in seconds.

        Returns:
            Status and body. The status is 429 if too many requests are in flight, 503 if no engine is up, and 504 on
            timeout; the body then contains the reason.
        """
        if sum(self._in_flight.values()) >= self._max_in_flight:
            return error_response(429, f"{self._max_in_flight} requests are in flight, which is the limit; retry later")
        deadline = time.monotonic() + seconds
        while available := [one for one in self._engines if one not in self._lost]:
            engine = min(available, key=self._in_flight.__getitem__)
            self._in_flight[engine] += 1
            try:
                return await asyncio.wait_for(engine.request(method, path, body), deadline - time.monotonic())
            except UnreachableError as error:
                self._exclude(engine, error)
            except asyncio.TimeoutError:
                return error_response(504, f"no answer from {engine.name} within the caller's timeout of {seconds:g} s")
            finally:
                self._in_flight[engine] -= 1
        return error_response(503, f"no engine is up; {'; '.join(self._lost.values())}")

    def _exclude(self, engine: Engine, error: UnreachableError) -> None:
        """Exclude an engine until it answers a ping."""
        if engine in self._lost:
            return
        self._lost[engine] = str(error)
        log.warning("%s is lost and restarting; requests go to the other engines: %s", engine.name, error)
        task = asyncio.get_running_loop().create_task(self._ping_until_up(engine))
        self._ping_tasks.add(task)
        task.add_done_callback(self._ping_tasks.discard)

    async def _ping_until_up(self, engine: Engine) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                process_id = await engine.ping()
            except RewardstackError as error:
                self._lost[engine] = str(error)
            else:
                del self._lost[engine]
                log.warning("%s is up again (pid %d)", engine.name, process_id)
                return


def error_response(status: int, why: str) -> Response:
    """Return the response to a request that no engine has answered.

    Args:
        status: the HTTP status.
        why: the reason, for the body.
    """
    return status, json.dumps({"error": why}).encode()
