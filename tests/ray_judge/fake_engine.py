"""An engine without a model: the same interface, replies that follow from the prompt, and a process to be killed."""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from typing import Any

from rewardstack.ray_judge import EngineOptions

MODELS = {"object": "list", "data": [{"id": "fake", "root": "/models/fake", "owned_by": "vllm"}]}
SLOW = "SLOW"
"""A prompt that holds this is answered late."""
SLOW_SECONDS = 3.0


def reward_of(prompt: str) -> float:
    """What the engine says of a prompt."""
    return zlib.crc32(prompt.encode()) % 1000 / 1000


class FakeEngine:
    """As `FrozenVllmEngine`."""

    def __init__(self, options: EngineOptions) -> None:
        if options.model == "broken":
            raise RuntimeError("there is no such model: broken")

    async def ping(self) -> int:
        """The id of its process."""
        return os.getpid()

    async def request(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of its answer."""
        if path == "/v1/models":
            return 200, json.dumps(MODELS).encode()
        if path == "/version":
            return 200, b'{"version": "0.32.0"}'
        if path != "/v1/chat/completions":
            return 404, b'{"error": "not found"}'
        asked = json.loads(body)
        prompt = asked["messages"][-1]["content"]
        if SLOW in prompt:
            await asyncio.sleep(SLOW_SECONDS)
        content = f"REWARD: {reward_of(prompt):.3f}"
        return 200, json.dumps(completion(asked, content)).encode()


def completion(asked: dict[str, Any], content: str) -> dict[str, Any]:
    """A chat's reply, as vLLM has it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return {"object": "chat.completion", "model": asked.get("model", "fake"), "choices": [choice], "usage": usage}
