"""Client of an embedding server: request what the server reports about itself, and the vectors of texts."""

from __future__ import annotations

import asyncio
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from rewardstack.cause import Cause
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import BudgetError, RejectedError, ReplyError, RewardstackError, ServiceError
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import KEY_REFUSED
from rewardstack.scorers.embedding.options import RequestParams
from rewardstack.scorers.embedding.protocol import (
    EMBED,
    EMBEDDINGS,
    INFO,
    MAX_BODY,
    MODELS,
    UNKNOWN,
    ServerInfo,
    parse_info,
    parse_models,
    parse_vectors,
    write_request,
)
from rewardstack.scorers.embedding.similarity import Vector
from rewardstack.transport.discovery import Discovery
from rewardstack.transport.message import Message
from rewardstack.transport.servers import Servers

TEXT_REFUSED = (400, 413, 422)
"""HTTP statuses for a request with a text that is too long, or with too many texts."""
FAILED_DEPENDENCY = 424
"""TEI's HTTP status for a failure of the model, which a single text can cause."""
TOO_LARGE = 413
MAX_BLIND_SPLITS = 2
"""Maximum number of times to split a failing request while no part of it succeeds."""

VectorOrError = Vector | RewardstackError
"""A text's vector, or the error in its place."""


class Server:
    """A client of equivalent embedding servers.

    Args:
        pool: the endpoints of the servers.
        with_key_hint: returns an error about a refused key with a note on where the key is set, and other errors
            unchanged.
        meter: counts the usage of requests for vectors.
    """

    def __init__(self, pool: Servers, with_key_hint: Callable[[RejectedError], RejectedError], meter: Meter) -> None:
        self._pool = pool
        self._with_key_hint = with_key_hint
        self._meter = meter
        self._path = EMBED
        self._info = UNKNOWN
        self._has_info = False
        self._discovery: Discovery[Servers, ServerInfo] = Discovery()

    async def info(self, deadline: SharedDeadline, wait: float = math.inf) -> ServerInfo:
        """Return what the server reports about itself; `UNKNOWN` if it reports nothing.

        Args:
            deadline: the caller's deadline.
            wait: maximum time to wait if no earlier answer is cached, in seconds.

        Raises:
            DeadlineError, ReplyError: the server did not answer.
            RefusedKeyError: the server refuses the key.
        """
        info = await self._discovery.find(self._pool, self._fetch_info, deadline, wait)
        if info.requests and info != self._info:
            self._pool.lower_limit(info.requests)
        self._info = info
        return info

    async def embed(
        self, texts: Sequence[str], params: RequestParams, deadline: SharedDeadline
    ) -> Sequence[VectorOrError]:
        """Return the vector or the error of each text, in order; split a failing request to find the bad text.

        A request that the server refuses because of its texts (`TEXT_REFUSED`) is always split. A failure of the model
        or an invalid reply may not be due to a text, so such a request is split at most `MAX_BLIND_SPLITS` times while
        no part succeeds.

        Args:
            texts: the texts, none of them empty.
            params: the parameters of the request.
            deadline: deadline of the batch.
        """
        results: dict[int, VectorOrError] = {}
        parts, depth, has_answered = [range(len(texts))], 0, False
        while parts:
            part_texts = [[texts[index] for index in part] for part in parts]
            requests = [self._try(one, params, deadline, once=depth > 0) for one in part_texts]
            outcomes = await asyncio.gather(*requests)
            has_answered |= any(not isinstance(outcome, RewardstackError) for outcome in outcomes)
            halves: list[range] = []
            for part, one, outcome in zip(parts, part_texts, outcomes, strict=True):
                if not isinstance(outcome, RewardstackError):
                    results.update(zip(part, outcome, strict=True))
                elif len(part) > 1 and _should_split(outcome, has_answered or depth < MAX_BLIND_SPLITS):
                    middle = _split_index(one) if is_too_large(outcome) else len(part) // 2
                    halves += [part[:middle], part[middle:]]
                else:
                    results.update(dict.fromkeys(part, self._text_error(outcome, one)))
            parts, depth = halves, depth + 1
        return [results[index] for index in range(len(texts))]

    async def _try(
        self, texts: Sequence[str], params: RequestParams, deadline: SharedDeadline, *, once: bool
    ) -> Sequence[VectorOrError] | ServiceError | BudgetError:
        try:
            return await self._post(texts, params, deadline, once=once)
        except (ServiceError, BudgetError) as error:
            return error

    def _text_error(self, error: ServiceError | BudgetError, texts: Sequence[str]) -> RewardstackError:
        if not isinstance(error, RejectedError):
            return error
        if is_too_large(error):
            size = len(texts[0].encode("utf-8", "replace"))
            why = f"a text ({size:,} bytes) is too large for the server: {error}"
            return RejectedError(why, error.status, cause=Cause.TOO_LONG)
        return self._with_key_hint(error)

    async def _post(
        self, texts: Sequence[str], params: RequestParams, deadline: SharedDeadline, *, once: bool
    ) -> Sequence[VectorOrError]:
        """Request the vectors of texts; if the server has neither `/info` nor `/embed`, switch to `/v1/embeddings`.

        Args:
            texts: the texts.
            params: the parameters of the request.
            deadline: deadline of the batch.
            once: whether an invalid reply is final; see `Message.no_retry`.
        """
        path, model = self._path, self._info.model
        body, probe = write_request(path, texts, params, model), write_request(path, (), params, model)
        if len(body) > MAX_BODY and len(texts) > 1:
            raise RejectedError(f"{path}: {len(texts)} texts of {len(body)} bytes are too many for one request", 413)

        def read(reply: bytes) -> Sequence[VectorOrError]:
            self._meter.count_tokens(reply)
            return parse_vectors(path, reply, len(texts))

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
            vectors: Sequence[VectorOrError] = await self._pool.ask(message, deadline)
            return vectors
        except RejectedError as error:
            if error.status != 404 or is_known:
                raise
        self._path = EMBEDDINGS
        return await self._post(texts, params, deadline, once=once)

    async def _fetch_info(self, deadline: SharedDeadline) -> ServerInfo:
        """Return the information from `/info`, else from `/v1/models`; `UNKNOWN` if neither names a model."""
        for path, read in ((INFO, parse_info), (MODELS, parse_models)):
            try:
                message = Message("GET", path, read=partial(_parse, read), is_optional=True)
                info: ServerInfo | None = await self._pool.ask(message, deadline)
            except RejectedError as error:
                if error.status in KEY_REFUSED:
                    raise self._with_key_hint(error) from error
                continue
            if info is not None:
                self._has_info = path == INFO
                return info
        return UNKNOWN


def _parse(read: Callable[[bytes], ServerInfo | None], reply: bytes) -> ServerInfo | None:
    """Return the result of `read`; raise ReplyError if the reply is not JSON."""
    try:
        json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise ReplyError("not JSON") from error
    return read(reply)


def is_too_large(error: BaseException) -> bool:
    """Return whether a request was refused because its body is too large."""
    return isinstance(error, RejectedError) and error.status == TOO_LARGE


def _split_index(texts: Sequence[str]) -> int:
    """Return the index that splits the texts into two non-empty parts with about the same number of characters."""
    sums = [*accumulate(map(len, texts))]
    return min(max(1, bisect_left(sums, sums[-1] / 2)), len(texts) - 1)


def _should_split(error: ServiceError | BudgetError, may_be_text: bool) -> bool:
    """Return whether to split a failed request.

    Args:
        error: the error of the request.
        may_be_text: whether one of the texts may have caused the failure of the server.
    """
    if isinstance(error, RejectedError):
        return error.status in TEXT_REFUSED or (error.status == FAILED_DEPENDENCY and may_be_text)
    return isinstance(error, ReplyError) and may_be_text
