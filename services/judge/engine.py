"""vLLM's command line and environment for a judge; its flags stand in vllm-cpu.yaml and vllm-gpu.yaml."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.judge.model import Model
from services.models import machine
from services.stack.errors import StackError
from services.stack.rundir import CHART_FILES

PROBE = """
import importlib.metadata, importlib.util
spec = importlib.util.find_spec("vllm")
print(spec.submodule_search_locations[0] if spec else "")
print(importlib.metadata.version("vllm") if spec else "")
"""
PROBE_SECONDS = 60
FLAG = re.compile(r"^([a-z-]+): (.+)$", re.MULTILINE)
SERVED = "--served-model-name"
TEMPLATE_DEFAULTS = "default-chat-template-kwargs"
SHARED_MEMORY = 512 * 2**20
"""Bytes of /dev/shm through which a vLLM talks to a worker process: it takes up 160 and 240 MiB for one."""
ONE_PROCESS = ("--distributed-executor-backend", "vllm.v1.executor.uniproc_executor.UniProcExecutor")
"""The worker is no process of its own. On a processor vLLM turns its own word for this, `uni`, into `mp`."""


@dataclass(frozen=True)
class Vllm:
    """An installed vLLM.

    Args:
        python: the interpreter that has it.
        version: of it.
        template_defaults: whether it knows TEMPLATE_DEFAULTS.
    """

    python: str
    version: str
    template_defaults: bool

    @property
    def for_cpu(self) -> bool:
        """Whether it was built for processors; it picks its platform by this."""
        return "cpu" in self.version


@dataclass(frozen=True)
class Options:
    """What can be set; a field that is empty is left to vllm-cpu.yaml or vllm-gpu.yaml.

    Args:
        dtype: of weights and activations.
        max_model_len: tokens of a prompt and its answer, or `auto` for what memory allows.
        gpu_memory_utilization: the part of a GPU's memory that vLLM takes, from 0 to 1.
        tensor_parallel_size: GPUs that one replica spreads over.
        max_num_seqs: requests that are worked on at once.
        max_num_batched_tokens: tokens of one step.
        further: more flags of vLLM, as they are.
    """

    dtype: str = ""
    max_model_len: str = ""
    gpu_memory_utilization: str = ""
    tensor_parallel_size: int = 1
    max_num_seqs: str = ""
    max_num_batched_tokens: str = ""
    further: tuple[str, ...] = ()


def find(python: str) -> Vllm | None:
    """The vLLM of an interpreter, None where it has none.

    Raises:
        StackError: the interpreter does not run.
    """
    try:
        done = subprocess.run(
            [python, "-c", PROBE], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True, cwd="/"
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StackError(f"{python} does not run: {error}") from None
    folder, version = done.stdout.split("\n")[:2]
    if not folder:
        return None
    sources = (Path(folder) / "entrypoints").rglob("cli_args.py")
    return Vllm(python, version, any(TEMPLATE_DEFAULTS.replace("-", "_") in path.read_text() for path in sources))


def command(vllm: Vllm, model: Model, listen: Sequence[str], options: Options) -> list[str]:
    """The command that serves a model; what it is given is what `arguments` is."""
    serve = [vllm.python, "-m", "vllm.entrypoints.cli.main", "serve"]
    return [*serve, *arguments(vllm, model, listen, options)]


def arguments(vllm: Vllm, model: Model, listen: Sequence[str], options: Options) -> list[str]:
    """The arguments of `vllm serve` for a model.

    Args:
        vllm: that serves it.
        model: to serve.
        listen: flags that say where, such as `--uds PATH`.
        options: flags among `further` come last, so that they win.
    """
    flags = [*listen, SERVED, model.name, *_shared(vllm)]
    if not vllm.for_cpu:
        flags += _flag("--gpu-memory-utilization", options.gpu_memory_utilization)
    flags += _flag("--dtype", options.dtype)
    flags += _flag("--max-model-len", options.max_model_len)
    flags += _flag("--max-num-seqs", options.max_num_seqs)
    flags += _flag("--max-num-batched-tokens", options.max_num_batched_tokens)
    if options.tensor_parallel_size > 1:
        flags += ["--tensor-parallel-size", str(options.tensor_parallel_size)]
    elif vllm.for_cpu and _little_shared_memory():
        flags += ONE_PROCESS
    return [model.source, *flags, *options.further]


def served(command: Sequence[str]) -> str:
    """The name by which clients ask for the model that a `command` serves; empty where it gives none."""
    return command[command.index(SERVED) + 1] if SERVED in command else ""


def environment(vllm: Vllm, model: Model, gpus: Sequence[str], cpu_cache: str) -> dict[str, str]:
    """The variables that vLLM is given beside those of the system; the key is not among them.

    Args:
        vllm: that serves.
        model: that it serves.
        gpus: those of this replica, as CUDA_VISIBLE_DEVICES names them.
        cpu_cache: GiB of the cache of keys and values on a processor.
    """
    own = {"VLLM_NO_USAGE_STATS": "1"}
    if model.local:
        own["HF_HUB_OFFLINE"] = "1"
    if vllm.for_cpu:
        own["VLLM_CPU_KVCACHE_SPACE"] = cpu_cache
        # Bound to processors, the judges of a machine would all choose the same ones.
        own["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        if _little_shared_memory():
            # A worker process would be given these by vLLM, which keeps a processor for itself as well.
            own["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) - 1))
    else:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return own


def obstacle(tensor_parallel_size: int) -> str:
    """Why this machine cannot run a judge that is spread over processes; empty where it can, or is not spread."""
    if tensor_parallel_size == 1 or not _little_shared_memory():
        return ""
    return (
        f"JUDGE_TENSOR_PARALLEL_SIZE={tensor_parallel_size} needs {SHARED_MEMORY // 2**20} MiB of shared memory, and "
        f"/dev/shm has {machine.shared_memory() // 2**20} (a container is given more by --shm-size=1g)"
    )


def _little_shared_memory() -> bool:
    return machine.shared_memory() < SHARED_MEMORY


def replica_name(number: int, judge: str = "judge") -> str:
    """Of a replica, counted from 1; that of a named judge, in whose name a hyphen may stand, has a dot before it."""
    if number == 1:
        return judge
    return f"{judge}{'.' if '.' in judge else '-'}{number}"


def _shared(vllm: Vllm) -> list[str]:
    """The flags of every judge on this kind of machine."""
    file = CHART_FILES / f"judge/vllm-{'cpu' if vllm.for_cpu else 'gpu'}.yaml"
    flags = []
    for name, value in FLAG.findall(file.read_text(encoding="utf-8")):
        if name != TEMPLATE_DEFAULTS or vllm.template_defaults:
            flags += [f"--{name}"] if value == "true" else [f"--{name}", value]
    return flags


def _flag(name: str, value: str) -> list[str]:
    return [name, value] if value else []
