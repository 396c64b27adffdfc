"""Which models a judge serves: `GET /v1/models`, asked once a minute and never twice at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Hashable
from typing import NamedTuple

from rewardstack.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ReplyError
from rewardstack.transport.service import Service

DEFAULT = "Qwen/Qwen3-32B"
"""The judge where nobody says otherwise and the server serves several models."""
PATH = "/v1/models"
FRESH = 60.0
"""Seconds for which an answer is believed."""

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
    """What every judge asked so far serves: model names with their roots, None where a judge does not tell."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, dict[str, str] | None]] = {}
        self._asking: dict[Hashable, asyncio.Lock] = {}

    async def refresh(self, destination: Hashable, service: Service, deadline: SharedDeadline) -> None:
        """Asks a judge what it serves, unless it was asked within `FRESH`.

        Args:
            destination: the service's identity.
            service: to ask.
            deadline: of the caller.

        Raises:
            DeadlineError: it did not answer in time.
            RejectedError: it does not take the key.
        """
        async with self._asking.setdefault(destination, asyncio.Lock()):
            known = self._known.get(destination)
            if known is None or time.monotonic() > known[0] + FRESH:
                self._known[destination] = time.monotonic(), await _ask(service, deadline)

    def is_known(self, destination: Hashable) -> bool:
        """Whether the judge was asked at all."""
        return destination in self._known

    def served(self, destination: Hashable) -> list[str]:
        """The names of the models that the judge serves; empty where it does not tell."""
        return list(self._known[destination][1] or {}) if destination in self._known else []

    def choose(self, wanted: str, destination: Hashable) -> Model:
        """The model that is to judge.

        Args:
            wanted: its name; empty for the one that the server serves if it serves one, else `DEFAULT`.
            destination: the service's identity.
        """
        roots = self._known[destination][1] or {}
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name))


def read_models(data: bytes) -> dict[str, str] | None:
    """The models in an answer of `/v1/models` and their roots, None where it is no such answer."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


async def _ask(service: Service, deadline: SharedDeadline) -> dict[str, str] | None:
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
