"""Which models a judge serves, and in which dialect: `GET /v1/models`, and what its refusals have taught."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.event_loop import within
from rewardstack.core.lru import LruCache
from rewardstack.errors import RejectedError, ReplyError, ServiceError
from rewardstack.scorers.destination import KEY_REFUSED, Destination
from rewardstack.scorers.judge.api import MODELS, Api, below, deployment
from rewardstack.scorers.judge.dialect import OLD_VLLM, UNKNOWN, VLLM, Dialect, dialect_of, vllm_of
from rewardstack.scorers.judge.refusals import corrected, refused_fields
from rewardstack.transport.discovery import SERVERS, Discovery, briefly
from rewardstack.transport.endpoint import Message

DEFAULT = "Qwen/Qwen3-32B"
"""The judge where nobody says otherwise and the server serves several models."""
VERSION = "/version"

log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A model that judges.

    Args:
        name: under which it is asked.
        root: what the server says it is made of; None where it does not tell.
        dialect: in which it is asked.
    """

    name: str
    root: str | None
    dialect: Dialect = VLLM


class Served(NamedTuple):
    """What a judge says of itself.

    Args:
        roots: the names of its models with what they are made of; empty where it does not tell.
        dialect: of its interface.
    """

    roots: Mapping[str, str] = MappingProxyType({})
    dialect: Dialect = UNKNOWN


NOTHING = Served()
"""Of a judge that does not tell."""


class Models:
    """What every judge asked so far serves, and what it takes.

    Args:
        api: of the judges.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._served: Discovery[Destination, Served] = Discovery()
        self._corrected: LruCache[tuple[Destination, str, Dialect], Dialect] = LruCache(SERVERS)

    async def meet(self, destination: Destination, deadline: SharedDeadline, wait: float) -> None:
        """Ask a judge what it serves, unless it said so lately.

        Args:
            destination: the judge.
            deadline: of the caller.
            wait: seconds that the caller waits at most for a first answer.

        Raises:
            DeadlineError: it did not answer in time.
            RejectedError: it does not take the key.
        """
        await self._served.find(destination, partial(self._ask, destination), deadline, wait)

    def served(self, destination: Destination) -> list[str]:
        """The names of the models that the judge serves; empty where it does not tell."""
        return list(self._served.known(destination, NOTHING).roots)

    def choose(self, wanted: str, destination: Destination) -> Model:
        """The model that is to judge.

        Args:
            wanted: its name; empty for the one that the server serves if it serves one, else `DEFAULT`.
            destination: the judge.
        """
        roots, dialect = self._served.known(destination, NOTHING)
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name), self._corrected.get((destination, name, dialect)) or dialect)

    def learn(self, error: RejectedError, destination: Destination, model: Model, fields: Collection[str]) -> Model:
        """The model in the dialect that a refused request has taught; itself where it has taught nothing.

        Args:
            error: the refusal.
            destination: the judge.
            model: as it was asked.
            fields: of the request that the server may not take.
        """
        refused = refused_fields(error, fields)
        if not refused:
            return model
        place = destination, model.name, self._served.known(destination, NOTHING).dialect
        known = self._corrected.get(place) or place[2]
        if known == model.dialect and (better := corrected(known, refused)) != known:
            self._corrected.put(place, better)
            log.warning("%s takes no %s and is asked without: %s", model.name, ", ".join(refused), error)
            if "thinking_token_budget" in refused:
                log.warning("only max_tokens bounds its reasoning; start it with --reasoning-parser")
            known = better
        return model._replace(dialect=known)

    async def _ask(self, destination: Destination, deadline: SharedDeadline) -> Served:
        if name := deployment(destination.urls[0]):
            return Served({name: name})
        try:
            message = Message("GET", below(destination.urls, MODELS), read=_read, is_optional=True)
            roots, dialect = await self._api.ask(destination, message, deadline)
        except (RejectedError, ReplyError) as error:
            if isinstance(error, RejectedError) and error.status in KEY_REFUSED:
                raise
            if isinstance(error, ReplyError) and destination in self._served:
                raise  # a fault of the moment: what it said before holds
            log.warning("the judge does not tell its models, so its verdicts are not cached: %s", error)
            return NOTHING
        return Served(roots, await self._vllm(destination, deadline) if dialect is VLLM else dialect)

    async def _vllm(self, destination: Destination, deadline: SharedDeadline) -> Dialect:
        """The dialect of a vLLM; what it was before, else that of a new one, where its version does not come."""
        try:
            asked = self._api.ask(destination, Message("GET", VERSION, is_optional=True), deadline)
            return vllm_of(await within(briefly(deadline), asked))
        except (ServiceError, asyncio.TimeoutError):
            return OLD_VLLM if self._served.known(destination, NOTHING).dialect is OLD_VLLM else VLLM


def _read(data: bytes) -> tuple[dict[str, str], Dialect]:
    roots = read_models(data)
    if roots is None:
        raise ReplyError("it is no list of models")
    return roots, dialect_of(data)


def read_models(data: bytes) -> dict[str, str] | None:
    """The models in an answer of `/v1/models` and their roots, None where it is no such answer."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
