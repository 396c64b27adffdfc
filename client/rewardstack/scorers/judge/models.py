"""Which models a judge serves: `GET /v1/models`."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ReplyError, ServiceError
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.transport.discovery import Discovery, briefly
from rewardstack_settings.table import TABLE

DEFAULT = TABLE["JUDGE_GPU_MODEL"].default
"""The judge where nobody says otherwise and the server serves several models."""
PATH = "/v1/models"
NOTHING: Mapping[str, str] = MappingProxyType({})
"""What a judge serves that does not tell."""

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
    """What every judge asked so far serves: model names with their roots, none where a judge does not tell.

    Args:
        find_service: opens connections.
    """

    def __init__(self, find_service: FindService) -> None:
        self._find_service = find_service
        self._served: Discovery[Destination, Mapping[str, str]] = Discovery()

    async def meet(self, destinations: Collection[Destination], deadline: SharedDeadline) -> None:
        """Asks judges what they serve. Where there are several, one that is gone does not hold up the others.

        Args:
            destinations: the judges; one that does not answer stays unknown.
            deadline: of the caller.

        Raises:
            RefusedKeyError: a judge does not take its key.
        """
        unmet = [one for one in destinations if not self._served.is_fresh(one)]
        patience = math.inf if len(destinations) == 1 else briefly(deadline)
        asked = [self.refresh(one, deadline, patience) for one in unmet]
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, RefusedKeyError) or not isinstance(answer, (Mapping, ServiceError)):
                raise answer

    async def refresh(
        self, destination: Destination, deadline: SharedDeadline, patience: float = math.inf
    ) -> Mapping[str, str]:
        """What a judge serves; it is asked, unless it said so lately.

        Args:
            destination: the judge.
            deadline: of the caller.
            patience: seconds that the caller waits at most for a first answer.

        Raises:
            DeadlineError: it did not answer in time.
            RefusedKeyError: it does not take the key.
        """
        return await self._served.find(destination, partial(self._ask, destination), deadline, patience)

    def is_known(self, destination: Destination) -> bool:
        """Whether the judge was asked at all."""
        return destination in self._served

    def served(self, destination: Destination) -> list[str]:
        """The names of the models that the judge serves; empty where it does not tell."""
        return list(self._served.known(destination, NOTHING))

    def choose(self, wanted: str, destination: Destination) -> Model:
        """The model that is to judge.

        Args:
            wanted: its name; empty for the one that the server serves if it serves one, else `DEFAULT`.
            destination: the judge.
        """
        roots = self._served.known(destination, NOTHING)
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name))

    async def _ask(self, destination: Destination, deadline: SharedDeadline) -> Mapping[str, str]:
        try:
            served = read_models(await self._find_service(*destination).get(PATH, deadline))
            why = "it is no list of models"
        except (RejectedError, ReplyError) as error:
            if isinstance(error, RejectedError) and error.status in (401, 403):
                raise RefusedKeyError(str(error), error.status, destination) from error
            served, why = None, str(error)
        if served is None:
            log.warning("the judge does not tell its models, so its verdicts are not cached: %s", why)
        return served or NOTHING


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
