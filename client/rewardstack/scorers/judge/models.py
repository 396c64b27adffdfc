"""Discover a judge's models and API dialect, from `GET /v1/models` and from rejected requests."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.core.lru import LruCache
from rewardstack.errors import RejectedError, ReplyError, ServiceError
from rewardstack.scorers.destination import KEY_REFUSED, Destination
from rewardstack.scorers.judge.api import MODELS, Api, api_path, deployment_name
from rewardstack.scorers.judge.dialect import (
    OLD_VLLM,
    UNKNOWN,
    VLLM,
    Dialect,
    Value,
    detect_dialect,
    parse_vllm_version,
)
from rewardstack.scorers.judge.rejected_fields import omit_fields
from rewardstack.transport.discovery import MAX_SERVERS, Discovery, optional_wait
from rewardstack.transport.message import Message

DEFAULT = "Qwen/Qwen3-32B"
"""Name of the model to request if no name is set, and the server does not report exactly one model."""
VERSION = "/version"

log = logging.getLogger(__name__)


class Model(NamedTuple):
    """A judge's model.

    Args:
        name: the name under which the server serves the model.
        root: name of the underlying weights; None if the server does not report it.
        dialect: the request fields that the server supports.
    """

    name: str
    root: str | None
    dialect: Dialect = VLLM


class ServerReport(NamedTuple):
    """What a judge reports about itself.

    Args:
        roots: maps the served name of each model to the name of its weights; empty if unknown.
        dialect: the dialect of the API.
    """

    roots: Mapping[str, str] = MappingProxyType({})
    dialect: Dialect = UNKNOWN


UNREPORTED = ServerReport()
"""The report of a judge that does not list its models."""


class Models:
    """Discovers and stores the models and dialects of judges.

    Args:
        api: sends the requests.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reports: Discovery[Destination, ServerReport] = Discovery()
        self._corrected_dialects: LruCache[tuple[Destination, str, Dialect], Dialect] = LruCache(MAX_SERVERS)

    async def discover(self, destination: Destination, deadline: SharedDeadline, wait: float) -> None:
        """Request a judge's models, unless there is a recent reply.

        Args:
            destination: the judge's servers and key.
            deadline: the caller's deadline.
            wait: maximum time to wait if no earlier answer is cached, in seconds.

        Raises:
            DeadlineError: the judge did not answer in time.
            RejectedError: the judge refuses the key.
        """
        await self._reports.find(destination, partial(self._fetch, destination), deadline, wait)

    def served_models(self, destination: Destination) -> list[str]:
        """Return the names of the models that the judge serves; empty if they are unknown."""
        return list(self._reports.last_answer(destination, UNREPORTED).roots)

    def choose(self, name_or_empty: str, destination: Destination, omit: Sequence[str] = ()) -> Model:
        """Return the model to request from a judge.

        Args:
            name_or_empty: name of the model. If it is empty and the judge reports exactly one model, that model is
                chosen. If it is empty and the judge reports several models or no model, `DEFAULT` is chosen.
            destination: the judge's servers and key.
            omit: fields that the configuration omits.
        """
        roots = self._reports.last_answer(destination, UNREPORTED).roots
        name = name_or_empty or (next(iter(roots)) if len(roots) == 1 else DEFAULT)
        dialect = self._uncorrected(destination, omit)
        return Model(name, roots.get(name), self._corrected_dialects.get((destination, name, dialect)) or dialect)

    def _uncorrected(self, destination: Destination, omit: Sequence[str]) -> Dialect:
        """Return the dialect that the judge reports, without the fields that the configuration omits."""
        return omit_fields(self._reports.last_answer(destination, UNREPORTED).dialect, dict.fromkeys(omit))

    def record_rejection(
        self,
        error: RejectedError,
        destination: Destination,
        model: Model,
        rejected: Mapping[str, Value],
        omit: Sequence[str] = (),
    ) -> Model:
        """Record the fields that a judge rejects, and return the model with a dialect that omits them.

        Args:
            error: the judge's error.
            destination: the judge's servers and key.
            model: the model of the rejected request, from `choose` or from this method.
            rejected: fields from `rejected_fields`; not empty.
            omit: fields that the configuration omits.
        """
        key = destination, model.name, self._uncorrected(destination, omit)
        current = self._corrected_dialects.get(key) or key[2]
        if current == model.dialect:
            current = omit_fields(current, rejected)
            self._corrected_dialects.put(key, current)
            log.warning("%s rejects %s; %s: %s", model.name, " and ".join(rejected), _describe(rejected), error)
            if "thinking_token_budget" in rejected:
                log.warning(
                    "%s has no thinking budget, so only max_tokens limits its reasoning; start the server with "
                    "--reasoning-parser",
                    model.name,
                )
        return model._replace(dialect=current)

    async def _fetch(self, destination: Destination, deadline: SharedDeadline) -> ServerReport:
        """Return what a judge reports about itself.

        Azure gets no request, because its URL contains the name of the model deployment.
        """
        if name := deployment_name(destination.urls[0]):
            return ServerReport({name: name})
        try:
            message = Message("GET", api_path(destination.urls, MODELS), read=_parse, is_optional=True)
            roots, dialect = await self._api.ask(destination, message, deadline)
        except (RejectedError, ReplyError) as error:
            if isinstance(error, RejectedError) and error.status in KEY_REFUSED:
                raise
            if isinstance(error, ReplyError) and destination in self._reports:
                raise  # a temporary failure: the last answer stays valid
            log.warning("the judge does not report its models, so its verdicts are not cached: %s", error)
            return UNREPORTED
        return ServerReport(roots, await self._vllm_dialect(destination, deadline) if dialect is VLLM else dialect)

    async def _vllm_dialect(self, destination: Destination, deadline: SharedDeadline) -> Dialect:
        """Return the dialect for a vLLM server's version.

        If the request for the version fails, return `OLD_VLLM` if this was the last known dialect, else `VLLM`.
        """
        try:
            reply = self._api.ask(destination, Message("GET", VERSION, is_optional=True), deadline)
            return parse_vllm_version(await run_with_timeout(optional_wait(deadline), reply))
        except (ServiceError, asyncio.TimeoutError):
            return OLD_VLLM if self._reports.last_answer(destination, UNREPORTED).dialect is OLD_VLLM else VLLM


def _describe(rejected: Mapping[str, Value]) -> str:
    """Return what is sent instead of rejected fields, and the setting that does it for good."""
    sent = {field: json.dumps(value) for field, value in rejected.items() if value is not None}
    omitted = [field for field in rejected if field not in sent]
    notes = [f"requests now have {field} = {value}; set options.{field} = {value}" for field, value in sent.items()]
    notes += [f"requests now leave it out; set options.omit = {json.dumps(omitted)}"] if omitted else []
    return "; ".join(f"{note} in the judge's table of the routes file to do it for good" for note in notes)


def _parse(data: bytes) -> tuple[dict[str, str], Dialect]:
    roots = parse_models(data)
    if roots is None:
        raise ReplyError("not a list of models")
    return roots, detect_dialect(data)


def parse_models(data: bytes) -> dict[str, str] | None:
    """Return the name of the weights for each served name in a reply to `/v1/models`; None for a malformed reply."""
    try:
        return {str(one["id"]): str(one.get("root") or one["id"]) for one in json.loads(data)["data"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
