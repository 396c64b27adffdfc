"""One embedding server: what it says of itself, and the vectors it makes of texts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import BudgetError, RejectedError, RewardstackError, ServiceError, SettingsError
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.embedding.options import Asked
from rewardstack.scorers.embedding.protocol import (
    EMBED,
    OPENAI,
    UNKNOWN,
    About,
    read_info,
    read_models,
    read_vectors,
    write_request,
)
from rewardstack.scorers.embedding.similarity import Vector
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.endpoint_pool import EndpointPool

TOO_MUCH = (400, 413, 422)
"""Statuses by which one text, or too many of them, have a whole request refused."""

Found = Vector | RewardstackError
"""A text's vector, or why it has none."""


class Server:
    """Equivalent servers behind one service.

    Args:
        service: to ask them by.
        meter: of what requests for vectors cost.
    """

    def __init__(self, service: EndpointPool, meter: Meter) -> None:
        self._service = service
        self._meter = meter
        self._path = EMBED
        self._about = UNKNOWN
        self._said: Discovery[EndpointPool, About] = Discovery()

    async def about(self, deadline: SharedDeadline) -> About:
        """What it says of itself, `UNKNOWN` where it says nothing.

        Raises:
            DeadlineError, ReplyError: it did not answer.
            SettingsError: it does not take the key.
        """
        about = await self._said.find(self._service, self._ask_about, deadline)
        if about.requests and about != self._about:
            self._service.begin(about.requests)
        self._about = about
        return about

    async def embed(self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline) -> Sequence[Found]:
        """What is found for each text, in order; a request that is too much is split until it is not.

        Args:
            texts: none of them empty.
            asked: of the server with each of them.
            deadline: of all who wait for them.
        """
        try:
            return await self._post(texts, asked, deadline)
        except RejectedError as error:
            if error.status not in TOO_MUCH or len(texts) == 1:
                return [_explained(error)] * len(texts)
        except (ServiceError, BudgetError) as error:
            return [error] * len(texts)
        half = len(texts) // 2
        parts = await asyncio.gather(*(self.embed(part, asked, deadline) for part in (texts[:half], texts[half:])))
        return [*parts[0], *parts[1]]

    async def _post(self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline) -> Sequence[Found]:
        path, model = self._path, self._about.model
        probe, body = write_request(path, (), asked, model), write_request(path, texts, asked, model)
        try:
            reply = await self._service.post(path, body, deadline, probe, admit=self._meter.admit)
        except RejectedError as error:
            if error.status != 404 or path != EMBED:
                raise
            self._path = OPENAI
            return await self._post(texts, asked, deadline)
        self._meter.read(reply)
        return read_vectors(path, reply, len(texts))

    async def _ask_about(self, deadline: SharedDeadline) -> About:
        for path, read in (("/info", read_info), ("/v1/models", read_models)):
            try:
                about = read(await self._service.get(path, deadline))
            except RejectedError as error:
                if isinstance(explained := _explained(error), SettingsError):
                    raise explained from error
                continue
            if about is not None:
                return about
        return UNKNOWN


def _explained(error: RejectedError) -> RewardstackError:
    if error.status not in (401, 403):
        return error
    return SettingsError(f"{error}; set EMBEDDING_SERVER_API_KEY", "EMBEDDING_SERVER_API_KEY")
