"""Find vLLM, and build its command line and environment from the table of services and `vllm-*.yaml`."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.judge.model import Model
from services.models import machine
from services.stack.errors import StackError
from services.stack.rundir import CHART_FILES
from services.stack.services_table import SERVICES, Service
from services.stack.settings import Settings

PROBE = """
import importlib.metadata, importlib.util
print(importlib.metadata.version("vllm") if importlib.util.find_spec("vllm") else "")
"""
PROBE_SECONDS = 60
JUDGE = SERVICES["judge"]
FIXED_FLAGS_START = JUDGE.command.index("{config}") + 1
"""Index of the first flag after `--config FILE` in the judge's command in the table of services."""
SERVED_NAME_FLAG = "--served-model-name"
CONFIG_FLAG = "--config"
SHARED_MEMORY = 512 * 2**20
"""Minimum size of /dev/shm, in bytes, for vLLM with worker processes. A server uses 160 to 240 MiB."""
ONE_PROCESS = ("--distributed-executor-backend", "vllm.v1.executor.uniproc_executor.UniProcExecutor")
"""Flags that run the worker in the server's process. The short name `uni` does not work, because vLLM replaces it with
`mp` on a CPU."""


@dataclass(frozen=True)
class Vllm:
    """An installed vLLM.

    Args:
        python: interpreter in which vLLM is installed.
        version: version of vLLM.
    """

    python: str
    version: str

    @property
    def is_cpu_build(self) -> bool:
        """Whether this is a CPU build, according to its version. vLLM itself uses the same criterion."""
        return "cpu" in self.version

    @property
    def config(self) -> Path:
        """Configuration file with the flags that all judges on this platform share."""
        return CHART_FILES / f"judge/vllm-{'cpu' if self.is_cpu_build else 'gpu'}.yaml"


def find(python: str) -> Vllm | None:
    """Return the vLLM that an interpreter has installed; None if it has none.

    Raises:
        StackError: the interpreter does not run.
    """
    try:
        done = subprocess.run(
            [python, "-c", PROBE], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True, cwd="/"
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StackError(f"{python} does not run: {error}") from None
    version = done.stdout.strip()
    return Vllm(python, version) if version else None


def command(vllm: Vllm, model: Model, listen: Sequence[str], settings: Settings, service: Service = JUDGE) -> list[str]:
    """Return the command that serves a model. The parameters are those of `arguments`."""
    serve = [vllm.python, "-m", "vllm.entrypoints.cli.main", "serve"]
    return [*serve, *arguments(vllm, model, listen, settings, service)]


def arguments(
    vllm: Vllm, model: Model, listen: Sequence[str], settings: Settings, service: Service = JUDGE
) -> list[str]:
    """Return the arguments of `vllm serve` for a model.

    Args:
        vllm: the vLLM to use.
        model: model to serve.
        listen: flags with the address to listen on, such as `--uds PATH`.
        settings: settings of the stack; the user's flags (JUDGE_VLLM_ARGS or REWARD_MODEL_VLLM_ARGS) come last and take
            precedence.
        service: row of the table of services: judge or reward model.
    """
    user_flags = shlex.split(settings[service.more_options])
    # vLLM reads only one configuration file, and the user's file takes precedence.
    has_config = any(flag.partition("=")[0] == CONFIG_FLAG for flag in user_flags)
    config = [] if has_config else [CONFIG_FLAG, str(vllm.config)]
    flags = [*service.command[FIXED_FLAGS_START:], *service.arguments(settings, "cpu" if vllm.is_cpu_build else "gpu")]
    tensor_parallel_size = settings.number("JUDGE_TENSOR_PARALLEL_SIZE") if service is JUDGE else 1
    if vllm.is_cpu_build and tensor_parallel_size > 1:
        flags += ["--tensor-parallel-size", str(tensor_parallel_size)]
    elif vllm.is_cpu_build and _lacks_shared_memory():
        flags += ONE_PROCESS
    return [model.source, *listen, *config, SERVED_NAME_FLAG, model.name, *flags, *user_flags]


def served_name(command: Sequence[str]) -> str:
    """Return the served model name in a vLLM command; empty if the command sets none."""
    return command[command.index(SERVED_NAME_FLAG) + 1] if SERVED_NAME_FLAG in command else ""


def versions(vllm: Vllm) -> dict[str, str]:
    """Return a digest of the configuration file that a judge reads at startup, by file name."""
    return {vllm.config.name: hashlib.sha256(vllm.config.read_bytes()).hexdigest()[:16]}


def environment(vllm: Vllm, model: Model, gpus: Sequence[str], cpu_cache: str) -> dict[str, str]:
    """Return the environment variables for vLLM, except system variables and the API key.

    Args:
        vllm: the vLLM to use.
        model: model to serve.
        gpus: GPUs of this replica, as CUDA_VISIBLE_DEVICES names them.
        cpu_cache: size of the KV cache on a CPU, in GiB.
    """
    variables = dict(JUDGE.environment)
    if model.is_local:
        variables["HF_HUB_OFFLINE"] = "1"
    if vllm.is_cpu_build:
        variables |= {"VLLM_CPU_KVCACHE_SPACE": cpu_cache, **JUDGE.cpu_environment}
        if _lacks_shared_memory():
            # vLLM sets this variable only for worker processes, and here the worker runs in the server's process. Leave
            # one core for the server, as vLLM does.
            variables["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) - 1))
    else:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return variables


def unsupported_reason(tensor_parallel_size: int) -> str:
    """Return the reason why this machine cannot run a judge with this many worker processes; empty if it can."""
    if tensor_parallel_size == 1 or not _lacks_shared_memory():
        return ""
    return (
        f"JUDGE_TENSOR_PARALLEL_SIZE={tensor_parallel_size} needs {SHARED_MEMORY // 2**20} MiB of shared memory, and "
        f"/dev/shm has {machine.shared_memory() // 2**20} MiB (for a container: --shm-size=1g)"
    )


def _lacks_shared_memory() -> bool:
    return machine.shared_memory() < SHARED_MEMORY


def replica_name(number: int, judge: str = "judge") -> str:
    """Return the name of a replica: `judge` for the first one, then `judge-2`.

    For named judges, these are `judge.NAME` and `judge.NAME.2`, because NAME may contain hyphens.

    Args:
        number: number of the replica, from 1.
        judge: service name of the judge.
    """
    if number == 1:
        return judge
    return f"{judge}{'.' if '.' in judge else '-'}{number}"
