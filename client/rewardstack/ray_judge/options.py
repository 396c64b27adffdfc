"""What an engine is made of, and what it is placed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rewardstack.errors import RequestError

MOST_GPUS = 64
SHORTEST = 16
"""Tokens of a prompt and its reply below which nothing is judged."""


@dataclass(frozen=True)
class EngineOptions:
    """One engine; all of a service are alike.

    Args:
        model: a folder, or a name on the model hub.
        served_name: by which clients ask for it; empty for `model`.
        tensor_parallel_size: GPUs that one engine spreads over, each with one worker.
        max_model_len: tokens of a prompt and its reply; None for what memory allows.
        dtype: of weights and activations.
        gpu_memory_utilization: the part of each GPU's memory that it takes, from 0 to 1.
        further: flags of `vllm serve`, which win.
        environment: further variables of its processes.

    Raises:
        RequestError: one is out of bounds; names it.
    """

    model: str
    served_name: str = ""
    tensor_parallel_size: int = 1
    max_model_len: int | None = None
    dtype: str = "auto"
    gpu_memory_utilization: float = 0.9
    further: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.model:
            raise RequestError("model: it is empty; give a folder, or a name on the model hub", "model")
        if not 1 <= self.tensor_parallel_size <= MOST_GPUS:
            raise _out_of_bounds("tensor_parallel_size", self.tensor_parallel_size, f"from 1 to {MOST_GPUS}")
        if self.max_model_len is not None and self.max_model_len < SHORTEST:
            raise _out_of_bounds("max_model_len", self.max_model_len, f"at least {SHORTEST} tokens")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise _out_of_bounds("gpu_memory_utilization", self.gpu_memory_utilization, "above 0 and at most 1")

    @property
    def is_local(self) -> bool:
        """Whether the model is a folder, for which no hub is asked."""
        return Path(self.model).is_dir()

    def flags(self, *, on_gpu: bool) -> list[str]:
        """The arguments of `vllm serve`, the same as of a judge that is a server.

        Args:
            on_gpu: whether it computes on GPUs.
        """
        flags = ["--model", self.model, "--served-model-name", self.served_name or self.model]
        flags += ["--dtype", self.dtype, "--generation-config", "vllm"]
        flags += ["--max-model-len", str(self.max_model_len or "auto")]
        flags += ["--default-chat-template-kwargs", '{"enable_thinking": false}']
        if on_gpu:
            flags += ["--gpu-memory-utilization", str(self.gpu_memory_utilization)]
        else:
            flags += ["--enforce-eager"]  # compilation takes longer than it saves on a processor
        if self.tensor_parallel_size > 1:
            flags += ["--tensor-parallel-size", str(self.tensor_parallel_size)]
            flags += ["--distributed-executor-backend", "ray"]
        return [*flags, *self.further]

    def variables(self) -> dict[str, str]:
        """The variables of an engine's processes; under tensor parallelism each worker has a GPU, and a bundle."""
        own = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        if self.is_local:
            own["HF_HUB_OFFLINE"] = "1"
        if self.tensor_parallel_size > 1:
            own["VLLM_RAY_PER_WORKER_GPUS"] = "1"
            own["VLLM_RAY_BUNDLE_INDICES"] = ",".join(map(str, range(self.tensor_parallel_size)))
        return {**own, **self.environment}


def _out_of_bounds(name: str, value: float, bounds: str) -> RequestError:
    return RequestError(f"{name}: {value} is not {bounds}; correct it", name)
