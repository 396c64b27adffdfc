"""The actor itself: what trainers call, and what the client sends it in place of a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from rewardstack.errors import DeadlineError, OverloadError, ReplyError, ServiceError
from rewardstack.ray_judge.balancing import Answer, FrozenRewardInferenceClient, refusal
from rewardstack.ray_judge.engines import RemoteEngine, create_frozen_vllm_engines
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.transport.reply import Reply, body_of

NAME = "reward_inference_service"
CHAT, MODELS = "/v1/chat/completions", "/v1/models"
PATHS = {CHAT: "POST", MODELS: "GET", "/version": "GET", "/tokenize": "POST"}
"""What of vLLM's interface is answered; all else of it is none of a judge's."""
TIMEOUT = 60.0
"""Seconds that a call may take where nothing else is said, as LLM_JUDGE_SERVER_TIMEOUT has it."""
MAX_TOKENS = 512
PAUSE = 0.5
"""Seconds between two attempts where no engine is up."""

Message = dict[str, Any]
"""Of a chat: `role` and `content`."""


class RewardInferenceService:
    """Frozen engines behind one name.

    Args:
        options: of each engine.
        num_engines: how many.
        engine: the class whose objects they are; None for `FrozenVllmEngine`.

    Raises:
        RequestError: the engines cannot be made of this cluster.
    """

    def __init__(self, options: EngineOptions, num_engines: int, engine: type | None = None) -> None:
        self._engines: list[RemoteEngine] = create_frozen_vllm_engines(options, num_engines, engine)
        self._client = FrozenRewardInferenceClient(self._engines)

    async def ready(self, seconds: float) -> list[int]:
        """The processes of all engines, once all are up.

        Args:
            seconds: that an engine may wait for its place in the cluster.

        Raises:
            ConfigError: the cluster has no place for one.
            ServiceError: one does not start; says why.
        """
        await asyncio.gather(*[one.placed(seconds) for one in self._engines])
        return await asyncio.gather(*[one.ping() for one in self._engines])

    async def close(self) -> None:
        """Ends all engines."""
        for one in self._engines:
            one.remove()

    def state(self) -> list[dict[str, object]]:
        """As `FrozenRewardInferenceClient.state`."""
        return self._client.state()

    async def models(self) -> dict[str, Any]:
        """What it serves, as `GET /v1/models` of a server says it; raises as `chat` does."""
        return await self._asked("GET", MODELS, b"", TIMEOUT)

    async def score(
        self,
        messages: Sequence[Message],
        temperature: float = 0.0,
        max_tokens: int = MAX_TOKENS,
        seconds: float = TIMEOUT,
    ) -> str:
        """The text of the judge's reply, which is for the caller to read.

        Args:
            messages: of the chat; what a policy wrote belongs into a message of its own, or behind a fence.
            temperature: of sampling; 0 for the likeliest.
            max_tokens: of the reply.
            seconds: that it may take.

        Raises:
            ServiceError: as of `chat`.
        """
        asked = {"messages": list(messages), "temperature": temperature, "max_tokens": max_tokens}
        reply = await self.chat(asked, seconds)
        try:
            return str(reply["choices"][0]["message"]["content"] or "")
        except (KeyError, IndexError, TypeError):
            raise ReplyError(f"{NAME}: the engine's reply holds no message") from None

    async def score_batch(
        self,
        batch: Sequence[Sequence[Message]],
        temperature: float = 0.0,
        max_tokens: int = MAX_TOKENS,
        seconds: float = TIMEOUT,
    ) -> list[str | ServiceError]:
        """The text of each reply, in order; for a chat that has none the error that `score` would raise.

        Args:
            batch: chats, each as of `score`, as the other arguments are.
            temperature: of sampling.
            max_tokens: of each reply.
            seconds: that each may take.
        """
        asked = [self.score(messages, temperature, max_tokens, seconds) for messages in batch]
        replies: list[str | ServiceError] = []
        for reply in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(reply, BaseException) and not isinstance(reply, ServiceError):
                raise reply
            replies.append(reply)
        return replies

    async def chat(self, body: dict[str, Any], seconds: float = TIMEOUT) -> dict[str, Any]:
        """What `POST /v1/chat/completions` of a server would answer: `choices`, `usage`, `model`, probabilities too.

        Args:
            body: as it would be posted.
            seconds: that it may take, within which other engines are asked where one is lost.

        Raises:
            DeadlineError: there was no answer in time; names the last obstacle.
            RejectedError: the engine refuses the request.
            ReplyError: the engine failed.
        """
        return await self._asked("POST", CHAT, json.dumps(body).encode(), seconds)

    async def request(self, method: str, path: str, body: bytes, seconds: float) -> Answer:
        """What a server would answer over HTTP; for the client, which reads status and body as a server's.

        Args:
            method: `GET` or `POST`.
            path: of the interface, with its query.
            body: JSON, or nothing.
            seconds: that the caller waits.
        """
        plain = path.partition("?")[0]
        if plain == "/health":
            return (200, b"{}") if self._client.is_up else refusal(503, "no engine is up")
        if PATHS.get(plain) != method:
            return refusal(404, f"{method} {plain} is nothing that a judge in Ray answers; give it a server")
        return await self._client.request(method, plain, body, seconds)

    async def _asked(self, method: str, path: str, body: bytes, seconds: float) -> dict[str, Any]:
        until, obstacle = time.monotonic() + seconds, "no engine was asked"
        while (left := until - time.monotonic()) > 0:
            status, data = await self._client.request(method, path, body, left)
            try:
                reply: dict[str, Any] = json.loads(body_of(Reply(f"{NAME}{path}", status, {}, data)))
                return reply
            except OverloadError as error:
                obstacle = str(error)
            await asyncio.sleep(max(0.0, min(PAUSE, until - time.monotonic())))
        raise DeadlineError(f"no answer within {seconds:g} s; last: {obstacle}")
