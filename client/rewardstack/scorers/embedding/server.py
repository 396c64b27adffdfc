"""One embedding server: what it says of itself, and the vectors it makes of texts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import RejectedError, RewardstackError, ServiceError, SettingsError
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
from rewardstack.transport.service import Service

FRESH = 60.0
"""Seconds after which a server is asked again what it is; what it said before holds until it has answered."""
PATIENCE = 30.0
"""Seconds that it has for that."""
TOO_MUCH = (400, 413, 422)
"""Statuses by which one text, or too many of them, have a whole request refused."""

log = logging.getLogger(__name__)

Found = Vector | RewardstackError
"""A text's vector, or why it has none."""


class Server:
    """Equivalent servers behind one service.

    Args:
        service: to ask them by.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._path = EMBED
        self._about: About | None = None
        self._asked_at = 0.0
        self._asking = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None

    async def about(self, deadline: SharedDeadline) -> About:
        """What it says of itself, `UNKNOWN` where it says nothing; asked once, then looked after in the background.

        Raises:
            DeadlineError, ReplyError: it did not answer.
            SettingsError: it does not take the key.
        """
        if self._about is None:
            async with self._asking:
                if self._about is None:
                    self._learn(await self._ask_about(deadline))
        elif time.monotonic() > self._asked_at + FRESH and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.create_task(self._renew())
        assert self._about is not None
        return self._about

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
        except ServiceError as error:
            return [error] * len(texts)
        half = len(texts) // 2
        parts = await asyncio.gather(*(self.embed(part, asked, deadline) for part in (texts[:half], texts[half:])))
        return [*parts[0], *parts[1]]

    async def _post(self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline) -> Sequence[Found]:
        path, model = self._path, self._about.model if self._about else ""
        probe = write_request(path, (), asked, model)
        try:
            reply = await self._service.post(path, write_request(path, texts, asked, model), deadline, probe)
        except RejectedError as error:
            if error.status != 404 or path != EMBED:
                raise
            self._path = OPENAI
            return await self._post(texts, asked, deadline)
        return read_vectors(path, reply, len(texts))

    def _learn(self, about: About) -> None:
        if about.requests and about != self._about:
            self._service.begin(about.requests)
        self._about, self._asked_at = about, time.monotonic()

    async def _renew(self) -> None:
        try:
            self._learn(await self._ask_about(SharedDeadline(Deadline(PATIENCE))))
        except RewardstackError as error:
            log.info("the embedding server does not confirm what it said of itself: %s", error)
            self._asked_at = time.monotonic()

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
