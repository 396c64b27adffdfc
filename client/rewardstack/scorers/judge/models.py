"""The models of a judge and its dialect, from `GET /v1/models` and from refused requests."""

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
"""Default model if the server serves several and none is set."""
VERSION = "/version"

log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A judge's model.

    Args:
        name: served model name.
        root: underlying model that the server reports; None if it does not.
        dialect: supported request fields.
    """

    name: str
    root: str | None
    dialect: Dialect = VLLM


class Served(NamedTuple):
    """The information that a judge reports.

    Args:
        roots: underlying models by served name; empty if unknown.
        dialect: dialect of its API.
    """

    roots: Mapping[str, str] = MappingProxyType({})
    dialect: Dialect = UNKNOWN


NOTHING = Served()
"""The information of a judge that reports none."""


class Models:
    """The models and dialects of all judges.

    Args:
        api: of the judges.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._served: Discovery[Destination, Served] = Discovery()
        self._corrected: LruCache[tuple[Destination, str, Dialect], Dialect] = LruCache(SERVERS)

    async def meet(self, destination: Destination, deadline: SharedDeadline, wait: float) -> None:
        """Request a judge's models, unless they are known and recent.

        Args:
            destination: the judge.
            deadline: of the caller.
            wait: most seconds to wait for a first answer.

        Raises:
            DeadlineError: the judge did not answer in time.
            RejectedError: the judge refuses the key.
        """
        await self._served.find(destination, partial(self._ask, destination), deadline, wait)

    def served(self, destination: Destination) -> list[str]:
        """Return the names of the judge's models; empty if they are unknown."""
        return list(self._served.known(destination, NOTHING).roots)

    def choose(self, wanted: str, destination: Destination) -> Model:
        """Return the model to use.

        Args:
            wanted: its name; empty for the server's only model if it has one, else `DEFAULT`.
            destination: the judge.
        """
        roots, dialect = self._served.known(destination, NOTHING)
        name = wanted or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        return Model(name, roots.get(name), self._corrected.get((destination, name, dialect)) or dialect)

    def learn(self, error: RejectedError, destination: Destination, model: Model, fields: Collection[str]) -> Model:
        """Return the model with a dialect without the fields that a refusal names; unchanged if it names none.

        Args:
            error: the refusal.
            destination: the judge.
            model: as in the refused request.
            fields: optional fields of the request.
        """
        refused = refused_fields(error, fields)
        if not refused:
            return model
        place = destination, model.name, self._served.known(destination, NOTHING).dialect
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
        """Return the dialect of a vLLM server; the last known one, else the current one, if it reports no version."""
        try:
            asked = self._api.ask(destination, Message("GET", VERSION, is_optional=True), deadline)
            return vllm_of(await within(briefly(deadline), asked))
        except (ServiceError, asyncio.TimeoutError):
            return OLD_VLLM if self._served.known(destination, NOTHING).dialect is OLD_VLLM else VLLM


def _read(data: bytes) -> tuple[dict[str, str], Dialect]:
    roots = read_models(data)
    if roots is None:
        raise ReplyError("not a list of models")
    return roots, dialect_of(data)


def read_models(data: bytes) -> dict[str, str] | None:
    """Parse the models of `/v1/models` and their roots; return None if it is another reply."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
