"""What an engine is told, and what is asked of an application without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewardstack.errors import RequestError
from rewardstack.ray_judge import EngineOptions
from rewardstack.ray_judge.asgi import Event, ask


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"model": ""}, "model"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size"),
        ({"tensor_parallel_size": 65}, "tensor_parallel_size"),
        ({"max_model_len": 3}, "max_model_len"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
    ],
)
def test_out_of_bounds(given: dict[str, Any], field: str) -> None:
    """An option that is out of bounds is named."""
    with pytest.raises(RequestError, match=field) as raised:
        EngineOptions(**{"model": "m", **given})
    assert raised.value.field == field


def test_flags() -> None:
    """The length of the context is a flag of its own; several GPUs bring Ray's executor with one GPU a worker."""
    one = EngineOptions("m", max_model_len=4096).flags(uses_gpu=True)
    assert one[one.index("--max-model-len") + 1] == "4096"
    assert "--max-num-batched-tokens" not in one and "--tensor-parallel-size" not in one
    two = EngineOptions("m", tensor_parallel_size=2, further=("--seed", "3"))
    flags, variables = two.flags(uses_gpu=True), two.variables()
    assert flags[flags.index("--distributed-executor-backend") + 1] == "ray"
    assert flags[-2:] == ["--seed", "3"]
    assert (variables["VLLM_RAY_PER_WORKER_GPUS"], variables["VLLM_RAY_BUNDLE_INDICES"]) == ("1", "0,1")


def test_local_model(tmp_path: Path) -> None:
    """For a model that is a folder no hub is asked; variables that are given win."""
    assert EngineOptions(str(tmp_path)).variables()["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in EngineOptions("org/model").variables()
    given = EngineOptions(str(tmp_path), environment={"HF_HUB_OFFLINE": "0"})
    assert given.variables()["HF_HUB_OFFLINE"] == "0"


async def test_application() -> None:
    """An application is asked with path and body, and answers in as many parts as it likes."""

    async def echo(scope: Event, receive: Any, send: Any) -> None:
        event = await receive()
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode(), "more_body": True})
        await send({"type": "http.response.body", "body": event["body"]})

    status, body = await ask(echo, "POST", "/v1/chat/completions", json.dumps([1]).encode())
    assert (status, body) == (418, b"/v1/chat/completions[1]")
