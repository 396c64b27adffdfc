"""Which models a judge serves: `GET /v1/models`, asked once a minute and never twice at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Collection
from typing import NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ReplyError, ServiceError
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.transport.endpoint_pool import EndpointPool
from rewardstack_settings.table import TABLE

DEFAULT = TABLE["JUDGE_GPU_MODEL"].default
"""The judge where nobody says otherwise and the server serves several models."""
PATH = "/v1/models"
FRESH = 60.0
"""Seconds for which an answer is believed."""
MEETING = 2.0
"""Seconds that the slowest of several judges, or one that was asked before, may take for its answer,"""
MEETING_SHARE = 0.3
"""and the share that this may be of the time there is."""

log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A model that judges.

    Args:
        name: under which it is asked.
        root: what the server says it is made of; None where it does not tell.
    """

    name: str
    root: str | None


class Models:
    """What every judge asked so far serves: model names with their roots, None where a judge does not tell.

    Args:
        find_service: opens connections.
    """

    def __init__(self, find_service: FindService) -> None:
        self._find = find_service
        self._known: dict[Destination, tuple[float, dict[str, str] | None]] = {}
        self._asking: dict[Destination, asyncio.Lock] = {}
        self._meetings: set[asyncio.Task[None]] = set()

    async def meet(self, destinations: Collection[Destination], deadline: SharedDeadline) -> None:
        """Asks judges what they serve. Where there are several, one that is gone does not hold up the others.

        Args:
            destinations: the judges; one that does not answer stays unknown.
            deadline: of the caller.

        Raises:
            RefusedKeyError: a judge does not take its key.
        """
        unmet = [one for one in destinations if not self._is_fresh(one)]
        if not unmet:
            return
        meetings = [asyncio.create_task(self._meet(one, deadline)) for one in unmet]
        for meeting in meetings:
            self._meetings.add(meeting)
            meeting.add_done_callback(self._met)
        needed = len(destinations) == 1 and not self.is_known(unmet[0])
        patience = None if needed else min(MEETING, deadline.remaining() * MEETING_SHARE)
        done, _ = await asyncio.wait(meetings, timeout=patience)
        for meeting in done:
            meeting.result()

    async def _meet(self, destination: Destination, deadline: SharedDeadline) -> None:
        try:
            await self.refresh(destination, deadline)
        except RefusedKeyError:
            raise
        except ServiceError as error:
            log.debug("%s: %s", destination.urls, error)

    def _met(self, meeting: asyncio.Task[None]) -> None:
        self._meetings.discard(meeting)
        if not meeting.cancelled():
            meeting.exception()  # heard by `meet`, or met again by the samples

    async def refresh(self, destination: Destination, deadline: SharedDeadline) -> None:
        """Asks a judge what it serves, unless it was asked within `FRESH`.

        Raises:
            DeadlineError: it did not answer in time.
            RefusedKeyError: it does not take the key.
        """
        async with self._asking.setdefault(destination, asyncio.Lock()):
            if self._is_fresh(destination):
                return
            try:
                self._known[destination] = time.monotonic(), await _ask(self._find(*destination), deadline)
            except RejectedError as error:
                raise RefusedKeyError(str(error), error.status, destination) from error

    def _is_fresh(self, destination: Destination) -> bool:
        known = self._known.get(destination)
        return known is not None and time.monotonic() <= known[0] + FRESH

    def is_known(self, destination: Destination) -> bool:
        """Whether the judge was asked at all."""
        return destination in self._known

    def served(self, destination: Destination) -> list[str]:
        """The names of the models that the judge serves; empty where it does not tell."""
        return list(self._known[destination][1] or {}) if destination in self._known else []

    def choose(self, wanted: str, destination: Destination) -> Model:
        """The model that is to judge.

        Args:
            wanted: its name; empty for the one that the server serves if it serves one, else `DEFAULT`.
            destination: the judge.
        """
        roots = self._known[destination][1] or {}
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name))


class RefusedKeyError(RejectedError):
    """A judge does not take the key that goes to it.

    Args:
        message: its own words.
        status: 401 or 403.
        destination: the judge.
    """

    def __init__(self, message: str, status: int, destination: Destination) -> None:
        super().__init__(message, status)
        self.destination = destination


def read_models(data: bytes) -> dict[str, str] | None:
    """The models in an answer of `/v1/models` and their roots, None where it is no such answer."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


async def _ask(service: EndpointPool, deadline: SharedDeadline) -> dict[str, str] | None:
    try:
        served = read_models(await service.get(PATH, deadline))
        why = "it is no list of models"
    except (RejectedError, ReplyError) as error:
        if isinstance(error, RejectedError) and error.status in (401, 403):
            raise
        served, why = None, str(error)
    if served is None:
        log.warning("the judge does not tell its models, so its verdicts are not cached: %s", why)
    return served
