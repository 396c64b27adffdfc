"""Discovery of a judge's models and API dialect, from `GET /v1/models` and from refused requests."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.core.lru import LruCache
from rewardstack.errors import RejectedError, ReplyError, ServiceError
from rewardstack.scorers.destination import KEY_REFUSED, Destination
from rewardstack.scorers.judge.api import MODELS, Api, below, deployment
from rewardstack.scorers.judge.dialect import OLD_VLLM, UNKNOWN, VLLM, Dialect, dialect_of, vllm_of
from rewardstack.scorers.judge.refusals import corrected, refused_fields
from rewardstack.transport.discovery import MAX_SERVERS, Discovery, optional_wait
from rewardstack.transport.endpoint import Message

DEFAULT = "Qwen/Qwen3-32B"
"""Model to request if none is set and the server does not report exactly one."""
VERSION = "/version"

log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A judge's model.

    Args:
        name: the name under which the server serves the model.
        root: the underlying model, such as its weights' name; None if the server does not report it.
        dialect: the request fields that the server supports.
    """

    name: str
    root: str | None
    dialect: Dialect = VLLM


class Served(NamedTuple):
    """What a judge reports about itself.

    Args:
        roots: the underlying models by served name; empty if unknown.
        dialect: the dialect of the API.
    """

    roots: Mapping[str, str] = MappingProxyType({})
    dialect: Dialect = UNKNOWN


NOTHING = Served()
"""What is known of a judge that reports nothing."""


class Models:
    """The models and dialects of judges, as far as they are known.

    Args:
        api: sends the requests.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._served: Discovery[Destination, Served] = Discovery()
        self._corrected: LruCache[tuple[Destination, str, Dialect], Dialect] = LruCache(MAX_SERVERS)

    async def meet(self, destination: Destination, deadline: SharedDeadline, wait: float) -> None:
        """Request a judge's models, unless a recent answer is known.

        Args:
            destination: the judge's servers and key.
            deadline: the caller's deadline.
            wait: maximum time to wait for a first answer, in seconds.

        Raises:
            DeadlineError: the judge did not answer in time.
            RejectedError: the judge refuses the key.
        """
        await self._served.find(destination, partial(self._ask, destination), deadline, wait)

    def served(self, destination: Destination) -> list[str]:
        """Return the names of the models that the judge serves; empty if they are unknown."""
        return list(self._served.last_answer(destination, NOTHING).roots)

    def choose(self, wanted: str, destination: Destination) -> Model:
        """Return the model to request from a judge.

        Args:
            wanted: name of the model; empty for the judge's only model, or `DEFAULT` if it does not report exactly one.
            destination: the judge's servers and key.
        """
        roots, dialect = self._served.last_answer(destination, NOTHING)
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name), self._corrected.get((destination, name, dialect)) or dialect)

    def learn(self, error: RejectedError, destination: Destination, model: Model, fields: Collection[str]) -> Model:
        """Record the fields that a judge refuses, and return the model with a dialect that omits them.

        Args:
            error: the refusal.
            destination: the judge's servers and key.
            model: the model of the refused request.
            fields: the optional fields of the request.

        Returns:
            The model; unchanged if the refusal names no field that can be omitted.
        """
        refused = refused_fields(error, fields)
        if not refused:
            return model
        place = destination, model.name, self._served.last_answer(destination, NOTHING).dialect
        known = self._corrected.get(place) or place[2]
        if known == model.dialect and (better := corrected(known, refused)) != known:
            self._corrected.put(place, better)
            log.warning("%s does not support %s, which is now omitted: %s", model.name, ", ".join(refused), error)
            if "thinking_token_budget" in refused:
                log.warning(
                    "%s has no thinking budget, so only max_tokens limits its reasoning; start the server with "
                    "--reasoning-parser",
                    model.name,
                )
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
                raise  # a temporary failure: the last answer stays valid
            log.warning("the judge does not report its models, so its verdicts are not cached: %s", error)
            return NOTHING
        return Served(roots, await self._vllm(destination, deadline) if dialect is VLLM else dialect)

    async def _vllm(self, destination: Destination, deadline: SharedDeadline) -> Dialect:
        """Return the dialect of a vLLM server; if it reports no version, its last known dialect, else `VLLM`."""
        try:
            asked = self._api.ask(destination, Message("GET", VERSION, is_optional=True), deadline)
            return vllm_of(await run_with_timeout(optional_wait(deadline), asked))
        except (ServiceError, asyncio.TimeoutError):
            return OLD_VLLM if self._served.last_answer(destination, NOTHING).dialect is OLD_VLLM else VLLM


def _read(data: bytes) -> tuple[dict[str, str], Dialect]:
    roots = read_models(data)
    if roots is None:
        raise ReplyError("not a list of models")
    return roots, dialect_of(data)


def read_models(data: bytes) -> dict[str, str] | None:
    """Return the underlying models by served name from a reply of `/v1/models`; None if it is not one."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
