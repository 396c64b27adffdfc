"""A client of an embedding server: what the server reports about itself, and vectors for texts."""

from __future__ import annotations

import asyncio
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import BudgetError, RejectedError, ReplyError, RewardstackError, ServiceError
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
from rewardstack.transport.endpoint import Message
from rewardstack.transport.endpoint_pool import EndpointPool

TOO_MUCH = (400, 413, 422)
"""HTTP statuses for a request with a text that is too long, or with too many texts."""
FAILED_DEPENDENCY = 424
"""TEI's HTTP status for a failure of the model, which a single text can cause."""
TOO_LARGE = 413
BLIND_SPLITS = 2
"""How many times a failing request is split while no part of it succeeds."""

Found = Vector | RewardstackError
"""A text's vector, or the error in its place."""


class Server:
    """A client of equivalent embedding servers.

    Args:
        service: the endpoints of the servers.
        explained: adds to the error for a refused key where the key is set.
        meter: counts the usage of requests for vectors.
    """

    def __init__(
        self, service: EndpointPool, explained: Callable[[RejectedError], RejectedError], meter: Meter
    ) -> None:
        self._service = service
        self._explained = explained
        self._meter = meter
        self._path = EMBED
        self._about = UNKNOWN
        self._has_info = False
        self._discovery: Discovery[EndpointPool, About] = Discovery()

    async def about(self, deadline: SharedDeadline, wait: float = math.inf) -> About:
        """Return what the server reports about itself; `UNKNOWN` if it reports nothing.

        Args:
            deadline: the caller's deadline.
            wait: maximum time to wait for a first answer, in seconds.

        Raises:
            DeadlineError, ReplyError: the server did not answer.
            RefusedKeyError: the server refuses the key.
        """
        about = await self._discovery.find(self._service, self._ask_about, deadline, wait)
        if about.requests and about != self._about:
            self._service.lower_limit(about.requests)
        self._about = about
        return about

    async def embed(self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline) -> Sequence[Found]:
        """Return the vector or the error of each text, in order; split a failing request to find the bad text.

        If the server itself fails (rather than rejects a text), and fails for all parts, splitting stops after
        `BLIND_SPLITS` levels.

        Args:
            texts: non-empty texts.
            asked: the parameters of the request.
            deadline: deadline of the batch.
        """
        found: dict[int, Found] = {}
        parts, depth, has_answered = [range(len(texts))], 0, False
        while parts:
            some = [[texts[at] for at in part] for part in parts]
            posts = [self._try(one, asked, deadline, once=depth > 0) for one in some]
            outcomes = await asyncio.gather(*posts)
            has_answered |= any(not isinstance(outcome, RewardstackError) for outcome in outcomes)
            halves: list[range] = []
            for part, one, outcome in zip(parts, some, outcomes, strict=True):
                if not isinstance(outcome, RewardstackError):
                    found.update(zip(part, outcome, strict=True))
                elif len(part) > 1 and _splits(outcome, has_answered or depth < BLIND_SPLITS):
                    middle = _middle(one) if is_too_large(outcome) else len(part) // 2
                    halves += [part[:middle], part[middle:]]
                else:
                    found.update(dict.fromkeys(part, self._final(outcome, one)))
            parts, depth = halves, depth + 1
        return [found[at] for at in range(len(texts))]

    async def _try(
        self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline, *, once: bool
    ) -> Sequence[Found] | ServiceError | BudgetError:
        try:
            return await self._post(texts, asked, deadline, once=once)
        except (ServiceError, BudgetError) as error:
            return error

    def _final(self, error: ServiceError | BudgetError, texts: Sequence[str]) -> RewardstackError:
        if not isinstance(error, RejectedError):
            return error
        if is_too_large(error):
            size = len(texts[0].encode("utf-8", "replace"))
            return RejectedError(f"a text of {size:,} bytes is too large for the server: {error}", error.status)
        return self._explained(error)

    async def _post(
        self, texts: Sequence[str], asked: Asked, deadline: SharedDeadline, *, once: bool
    ) -> Sequence[Found]:
        path, model = self._path, self._about.model
        body, probe = write_request(path, texts, asked, model), write_request(path, (), asked, model)
        if len(body) > BODY_MOST and len(texts) > 1:
            raise RejectedError(f"{path}: {len(texts)} texts of {len(body)} bytes are too many for one request", 413)

        def read(reply: bytes) -> Sequence[Found]:
            self._meter.read(reply)
            return read_vectors(path, reply, len(texts))

        is_known = path != EMBED or self._has_info
        message = Message(
            *("POST", path, body),
            admit=self._meter.admit,
            read=read,
            is_optional=not is_known,
            no_retry=once,
            probe=probe,
            is_hedged=True,
        )
        try:
            found: Sequence[Found] = await self._service.ask(message, deadline)
            return found
        except RejectedError as error:
            if error.status != 404 or is_known:
                raise
        self._path = OPENAI
        return await self._post(texts, asked, deadline, once=once)

    async def _ask_about(self, deadline: SharedDeadline) -> About:
        for path, read in ((INFO, read_info), ("/v1/models", read_models)):
            try:
                message = Message("GET", path, read=partial(_read, read), is_optional=True)
                about: About | None = await self._service.ask(message, deadline)
            except RejectedError as error:
                if error.status in KEY_REFUSED:
                    raise self._explained(error) from error
                continue
            if about is not None:
                self._has_info = path == INFO
                return about
        return UNKNOWN


def _read(read: Callable[[bytes], About | None], reply: bytes) -> About | None:
    """Parse a reply with `read`; raise ReplyError if the reply is not JSON."""
    try:
        json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise ReplyError("not JSON") from error
    return read(reply)


def is_too_large(error: BaseException) -> bool:
    """Return whether a request was refused because its body is too large."""
    return isinstance(error, RejectedError) and error.status == TOO_LARGE


def _middle(texts: Sequence[str]) -> int:
    """Return the index that splits the texts into two non-empty parts with about the same number of characters."""
    sums = [*accumulate(map(len, texts))]
    return min(max(1, bisect_left(sums, sums[-1] / 2)), len(texts) - 1)


def _splits(error: ServiceError | BudgetError, may_be_text: bool) -> bool:
    """Return whether to split a failed request.

    Args:
        error: the error of the request.
        may_be_text: whether a failure of the server may be due to one of the texts.
    """
    if isinstance(error, RejectedError):
        return error.status in TOO_MUCH or (error.status == FAILED_DEPENDENCY and may_be_text)
    return isinstance(error, ReplyError) and may_be_text
