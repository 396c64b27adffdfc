"""One embedding server: what it says of itself, and the vectors it makes of texts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import BudgetError, RejectedError, RewardstackError, ServiceError
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import KEY_REFUSED
from rewardstack.scorers.embedding.options import Asked
from rewardstack.scorers.embedding.protocol import (
    BODY_MOST,
    EMBED,
    INFO,
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
        explained: says of a refused key whose it is.
        meter: of what requests for vectors cost.
    """

    def __init__(
        self, service: EndpointPool, explained: Callable[[RejectedError], RejectedError], meter: Meter
    ) -> None:
        self._service = service
        self._explained = explained
        self._meter = meter
        self._path = EMBED
        self._about = UNKNOWN
        self._said: Discovery[EndpointPool, About] = Discovery()

    async def about(self, deadline: SharedDeadline, patience: float = math.inf) -> About:
        """What it says of itself, `UNKNOWN` where it says nothing.

        Args:
            deadline: of the caller.
            patience: seconds that the caller waits at most for a first answer.

        Raises:
            DeadlineError, ReplyError: it did not answer.
            RefusedKeyError: it does not take the key.
        """
        about = await self._said.find(self._service, self._ask_about, deadline, patience)
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
                return [self._explained(error)] * len(texts)
        except (ServiceError, BudgetError) as error:
            return [error] * len(texts)
        half = len(texts) // 2
        parts = await asyncio.gather(*(self.embed(part, asked, deadline) for part in (texts[:half], texts[half:])))
        return [*parts[0], *parts[1]]

    async def _post(self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline) -> Sequence[Found]:
        path, model = self._path, self._about.model
        body, probe = write_request(path, texts, asked, model), write_request(path, (), asked, model)
        if len(body) > BODY_MOST and len(texts) > 1:
            raise RejectedError(f"{path}: {len(texts)} texts of {len(body)} bytes are too many for one request", 413)
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
        for path, read in ((INFO, read_info), ("/v1/models", read_models)):
            try:
                about = read(await self._service.get(path, deadline))
            except RejectedError as error:
                if error.status in KEY_REFUSED:
                    raise self._explained(error) from error
                continue
            if about is not None:
                return about
        return UNKNOWN
