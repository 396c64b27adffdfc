"""Define the judge's Ray actor.

Trainers can call `score` and `chat` directly. When rewardstack scores samples by their routes, it calls `request` (see
`rewardstack.transport.ray_actor`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from rewardstack.errors import DeadlineError, OverloadError, ReplyError, ServiceError
from rewardstack.ray_judge.balancing import FrozenRewardInferenceClient, Response, error_response
from rewardstack.ray_judge.engines import RemoteEngine, create_frozen_vllm_engines
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.transport.message import Reply, get_body

NAME = "reward_inference_service"
CHAT, MODELS = "/v1/chat/completions", "/v1/models"
METHODS = {CHAT: "POST", MODELS: "GET", "/version": "GET", "/tokenize": "POST"}
"""The HTTP method of each supported path of vLLM's API."""
TIMEOUT = 60.0
"""Default timeout of a call in seconds; equal to the default of LLM_JUDGE_SERVER_TIMEOUT."""
MAX_TOKENS = 512
"""Default maximum length of a reply, in tokens."""
RETRY_INTERVAL = 0.5
"""Seconds between two attempts of a request that was refused temporarily."""

Message = dict[str, Any]
"""A chat message: `role` and `content`."""


class RewardInferenceService:
    """A Ray actor that forwards requests to one or more engines with the same frozen weights.

    Args:
        options: the options of each engine.
        num_engines: number of engines.
        engine: the class of the engines; None for `FrozenVllmEngine`.

    Raises:
        RequestError: tensor parallelism needs GPUs, and the cluster has none.
    """

    def __init__(self, options: EngineOptions, num_engines: int, engine: type | None = None) -> None:
        self._engines: list[RemoteEngine] = create_frozen_vllm_engines(options, num_engines, engine)
        self._client = FrozenRewardInferenceClient(self._engines)

    async def ready(self, seconds: float) -> list[int]:
        """Wait until all engines are up and return their process IDs.

        Args:
            seconds: timeout for the placement of the engines in the cluster; loading the weights has no timeout.

        Raises:
            ConfigError: the cluster does not have the resources for the engines.
            ServiceError: an engine does not start.
        """
        await asyncio.gather(*[one.wait_until_placed(seconds) for one in self._engines])
        return await asyncio.gather(*[one.ping() for one in self._engines])

    async def close(self) -> None:
        """Stop all engines."""
        for one in self._engines:
            one.remove()

    def state(self) -> list[dict[str, object]]:
        """Return the state of all engines; see `FrozenRewardInferenceClient.state`."""
        return self._client.state()

    async def models(self) -> dict[str, Any]:
        """Return the models in the format of `GET /v1/models`; raise as `chat` does."""
        return await self._request_json("GET", MODELS, b"", TIMEOUT)

    async def score(
        self,
        messages: Sequence[Message],
        temperature: float = 0.0,
        max_tokens: int = MAX_TOKENS,
        seconds: float = TIMEOUT,
    ) -> str:
        """Return the text of the judge's reply, unparsed.

        Args:
            messages: the chat. Put the response to be judged into a separate message or between fences, so that the
                judge can distinguish it from your instructions.
            temperature: sampling temperature; 0 for greedy decoding.
            max_tokens: maximum length of the reply, in tokens.
            seconds: timeout in seconds.

        Raises:
            ServiceError: `chat` fails (see its errors), or the engine's reply has no message.
        """
        request_body = {"messages": list(messages), "temperature": temperature, "max_tokens": max_tokens}
        reply = await self.chat(request_body, seconds)
        try:
            return str(reply["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError):
            raise ReplyError(f"{NAME}: the engine's reply has no message") from None

    async def score_batch(
        self,
        batch: Sequence[Sequence[Message]],
        temperature: float = 0.0,
        max_tokens: int = MAX_TOKENS,
        seconds: float = TIMEOUT,
    ) -> list[str | ServiceError]:
        """Return for each chat, in order, the text of the reply or the error that `score` would raise.

        Args:
            batch: the chats, each as for `score`.
            temperature: sampling temperature.
            max_tokens: maximum length of each reply, in tokens.
            seconds: timeout of each chat, in seconds.
        """
        calls = [self.score(messages, temperature, max_tokens, seconds) for messages in batch]
        replies: list[str | ServiceError] = []
        for reply in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(reply, BaseException) and not isinstance(reply, ServiceError):
                raise reply
            replies.append(reply)
        return replies

    async def chat(self, body: dict[str, Any], seconds: float = TIMEOUT) -> dict[str, Any]:
        """Return a chat completion in the format of `POST /v1/chat/completions`.

        Args:
            body: the body of the request.
            seconds: timeout in seconds, including retries of a request that was refused temporarily.

        Raises:
            DeadlineError: no engine answered in time; the message has the last error.
            RejectedError: the engine rejected the request.
            ReplyError: the engine answered with an error such as 500, or raised an exception.
        """
        return await self._request_json("POST", CHAT, json.dumps(body).encode(), seconds)

    async def request(self, method: str, path: str, body: bytes, seconds: float) -> Response:
        """Return the response to a request.

        `rewardstack.transport.ray_actor` calls this method instead of sending the request to an HTTP server.

        Args:
            method: `GET` or `POST`.
            path: the path of the API; a query is ignored.
            body: a JSON document, or empty.
            seconds: timeout of the request, in seconds.
        """
        endpoint = path.partition("?")[0]
        if endpoint == "/health":
            return (200, b"{}") if self._client.is_up else error_response(503, "no engine is up")
        if METHODS.get(endpoint) != method:
            return error_response(404, f"a judge in Ray does not support {method} {endpoint}; use a judge server")
        return await self._client.request(method, endpoint, body, seconds)

    async def _request_json(self, method: str, path: str, body: bytes, seconds: float) -> dict[str, Any]:
        deadline, last_error = time.monotonic() + seconds, "no request was sent"
        while (remaining := deadline - time.monotonic()) > 0:
            status, data = await self._client.request(method, path, body, remaining)
            try:
                reply: dict[str, Any] = json.loads(get_body(Reply(f"{NAME}{path}", status, {}, data)))
                return reply
            except OverloadError as error:
                last_error = str(error)
            await asyncio.sleep(max(0.0, min(RETRY_INTERVAL, deadline - time.monotonic())))
        raise DeadlineError(f"no answer within {seconds:g} s; last error: {last_error}")
