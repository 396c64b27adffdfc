"""An engine without a model: the same interface, replies that follow from the prompt, and a process to be killed."""

from __future__ import annotations

import asyncio
import json
import os
import time
import zlib
from typing import Any

from rewardstack.ray_judge import EngineOptions

MODELS = {"object": "list", "data": [{"id": "fake", "root": "/models/fake", "owned_by": "vllm"}]}
SLOW = "SLOW"
"""A prompt that holds this is answered late."""
SLOW_SECONDS = 3.0
RESTART_SECONDS = 15.0
"""That a restarted engine takes to load its weights."""


def reward_of(prompt: str) -> float:
    """What the engine says of a prompt."""
    return zlib.crc32(prompt.encode()) % 1000 / 1000


class FakeEngine:
    """As `FrozenVllmEngine`."""

    def __init__(self, options: EngineOptions) -> None:
        import ray

        if options.model == "broken":
            raise RuntimeError("there is no such model: broken")
        if ray.get_runtime_context().was_current_actor_reconstructed:
            time.sleep(RESTART_SECONDS)

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
        content = await self.content(prompt)
        return 200, json.dumps(completion(asked, content)).encode()

    async def content(self, prompt: str) -> str:
        """Of its reply."""
        return f"REWARD: {reward_of(prompt):.3f}"


class TensorParallelEngine(FakeEngine):
    """An engine that has its workers placed as vLLM does, and says where they are.

    https://github.com/vllm-project/vllm/blob/main/vllm/v1/executor/ray_executor.py
    """

    def __init__(self, options: EngineOptions) -> None:
        super().__init__(options)
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        group = ray.util.get_current_placement_group()
        per_worker = float(os.environ["VLLM_RAY_PER_WORKER_GPUS"])
        self._workers = []
        for index in map(int, os.environ["VLLM_RAY_BUNDLE_INDICES"].split(",")):
            strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
            worker = ray.remote(Worker).options(num_cpus=0, num_gpus=per_worker, scheduling_strategy=strategy)
            self._workers.append(worker.remote())

    async def content(self, prompt: str) -> str:
        """Where everything is."""
        workers = await asyncio.gather(*[worker.place.remote() for worker in self._workers])
        indices, per_worker = os.environ["VLLM_RAY_BUNDLE_INDICES"], os.environ["VLLM_RAY_PER_WORKER_GPUS"]
        own = {"process": os.getpid(), "indices": indices, "per_worker": per_worker, "workers": workers}
        return json.dumps({**own, **place()})


class Worker:
    """One of an engine's workers."""

    def place(self) -> dict[str, Any]:
        """Where it is."""
        return place()


def place() -> dict[str, Any]:
    """Where the actor is that asks: its node, its placement group, its GPUs."""
    import ray

    context, group = ray.get_runtime_context(), ray.util.get_current_placement_group()
    return {"node": context.get_node_id(), "group": group.id.hex() if group else "", "gpus": ray.get_gpu_ids()}


def completion(asked: dict[str, Any], content: str) -> dict[str, Any]:
    """A chat's reply, as vLLM has it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    return {"object": "chat.completion", "model": asked.get("model", "fake"), "choices": [choice], "usage": usage}
