"""Validate the options of the judge's vLLM engines; convert them to `vllm serve` flags and environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rewardstack.errors import RequestError

MAX_GPUS = 64
"""Maximum number of GPUs per engine."""
MIN_MODEL_LEN = 16
"""Minimum context length in tokens."""


@dataclass(frozen=True)
class EngineOptions:
    """The options of a service's engines.

    Args:
        model: the model: a folder, or a name on the model hub.
        served_name: model name for clients; empty for `model`.
        tensor_parallel_size: number of GPUs per engine, each with one vLLM worker.
        max_model_len: context length in tokens; None for the maximum that fits into memory.
        dtype: data type of weights and activations.
        gpu_memory_utilization: share of each GPU's memory to use, from 0 to 1.
        further: more flags of `vllm serve`, which take precedence over the other options.
        environment: more environment variables of the engine's processes.

    Raises:
        RequestError: an option is out of bounds; the error names the option.
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
        if not 1 <= self.tensor_parallel_size <= MAX_GPUS:
            raise _out_of_bounds("tensor_parallel_size", self.tensor_parallel_size, f"a value from 1 to {MAX_GPUS}")
        if self.max_model_len is not None and self.max_model_len < MIN_MODEL_LEN:
            raise _out_of_bounds("max_model_len", self.max_model_len, f"at least {MIN_MODEL_LEN} tokens")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise _out_of_bounds("gpu_memory_utilization", self.gpu_memory_utilization, "a value above 0 and at most 1")

    @property
    def is_local(self) -> bool:
        """Whether the model is a folder, which needs no download."""
        return Path(self.model).is_dir()

    def flags(self, *, uses_gpu: bool) -> list[str]:
        """Return the flags for `vllm serve`, including those that make an engine reply like a judge server.

        Args:
            uses_gpu: whether the engine runs on GPUs.
        """
        flags = ["--model", self.model, "--served-model-name", self.served_name or self.model]
        flags += ["--dtype", self.dtype, "--generation-config", "vllm"]
        flags += ["--max-model-len", str(self.max_model_len or "auto")]
        flags += ["--default-chat-template-kwargs", '{"enable_thinking": false}']
        if uses_gpu:
            flags += ["--gpu-memory-utilization", str(self.gpu_memory_utilization)]
        else:
            flags += ["--enforce-eager"]  # on a CPU, compilation takes longer than it saves
        if self.tensor_parallel_size > 1:
            flags += ["--tensor-parallel-size", str(self.tensor_parallel_size)]
            flags += ["--distributed-executor-backend", "ray"]
        return [*flags, *self.further]

    def variables(self) -> dict[str, str]:
        """Return the environment variables of an engine's processes."""
        variables = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
        if self.is_local:
            variables["HF_HUB_OFFLINE"] = "1"
        if self.tensor_parallel_size > 1:
            variables["VLLM_RAY_PER_WORKER_GPUS"] = "1"
            variables["VLLM_RAY_BUNDLE_INDICES"] = ",".join(map(str, range(self.tensor_parallel_size)))
        return {**variables, **self.environment}


def _out_of_bounds(name: str, value: float, bounds: str) -> RequestError:
    return RequestError(f"{name}: {value} is out of bounds; set {bounds}", name)
