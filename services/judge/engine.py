"""vLLM's command line and environment for a judge, from the table of services; shared flags are in vllm-*.yaml."""

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
from services.stack.services_table import SERVICES
from services.stack.settings import Settings

PROBE = """
import importlib.metadata, importlib.util
print(importlib.metadata.version("vllm") if importlib.util.find_spec("vllm") else "")
"""
PROBE_SECONDS = 60
JUDGE = SERVICES["judge"]
SERVED = "--served-model-name"
CONFIG = "--config"
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
    """

    python: str
    version: str

    @property
    def for_cpu(self) -> bool:
        """Whether it was built for processors; it picks its platform by this."""
        return "cpu" in self.version

    @property
    def config(self) -> Path:
        """The file with the flags of every judge on this kind of machine."""
        return CHART_FILES / f"judge/vllm-{'cpu' if self.for_cpu else 'gpu'}.yaml"


def find(python: str) -> Vllm | None:
    """Return the vLLM of an interpreter, None where it has none.

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


def command(vllm: Vllm, model: Model, listen: Sequence[str], settings: Settings) -> list[str]:
    """Return the command that serves a model; arguments as those of `arguments`."""
    serve = [vllm.python, "-m", "vllm.entrypoints.cli.main", "serve"]
    return [*serve, *arguments(vllm, model, listen, settings)]


def arguments(vllm: Vllm, model: Model, listen: Sequence[str], settings: Settings) -> list[str]:
    """Return the arguments of `vllm serve` for a model.

    Args:
        vllm: that serves it.
        model: to serve.
        listen: flags that say where, such as `--uds PATH`.
        settings: of the stack; flags in JUDGE_VLLM_ARGS come last, so that they win.
    """
    further = shlex.split(settings[JUDGE.more_options])
    # vLLM reads one such file; one that the user names is read instead.
    own = any(flag.partition("=")[0] == CONFIG for flag in further)
    config = [] if own else [CONFIG, str(vllm.config)]
    flags = JUDGE.arguments(settings, "cpu" if vllm.for_cpu else "gpu")
    spread = settings.number("JUDGE_TENSOR_PARALLEL_SIZE")
    if vllm.for_cpu and spread > 1:
        flags += ["--tensor-parallel-size", str(spread)]
    elif vllm.for_cpu and _little_shared_memory():
        flags += ONE_PROCESS
    return [model.source, *listen, *config, SERVED, model.name, *flags, *further]


def served(command: Sequence[str]) -> str:
    """Return the name by which clients ask for the model that a `command` serves; empty where it gives none."""
    return command[command.index(SERVED) + 1] if SERVED in command else ""


def versions(vllm: Vllm) -> dict[str, str]:
    """Return the version of the file that a judge reads at its start, by name."""
    return {vllm.config.name: hashlib.sha256(vllm.config.read_bytes()).hexdigest()[:16]}


def environment(vllm: Vllm, model: Model, gpus: Sequence[str], cpu_cache: str) -> dict[str, str]:
    """Return the variables that vLLM is given beside those of the system; the key is not among them.

    Args:
        vllm: that serves.
        model: that it serves.
        gpus: those of this replica, as CUDA_VISIBLE_DEVICES names them.
        cpu_cache: GiB of the cache of keys and values on a processor.
    """
    own = dict(JUDGE.environment)
    if model.local:
        own["HF_HUB_OFFLINE"] = "1"
    if vllm.for_cpu:
        own |= {"VLLM_CPU_KVCACHE_SPACE": cpu_cache, **JUDGE.cpu_environment}
        if _little_shared_memory():
            # A worker process would be given these by vLLM, which keeps a processor for itself as well.
            own["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) - 1))
    else:
        own["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return own


def obstacle(tensor_parallel_size: int) -> str:
    """Return why this machine cannot run a judge that is spread over processes; empty where it can."""
    if tensor_parallel_size == 1 or not _little_shared_memory():
        return ""
    return (
        f"JUDGE_TENSOR_PARALLEL_SIZE={tensor_parallel_size} needs {SHARED_MEMORY // 2**20} MiB of shared memory, and "
        f"/dev/shm has {machine.shared_memory() // 2**20} (a container is given more by --shm-size=1g)"
    )


def _little_shared_memory() -> bool:
    return machine.shared_memory() < SHARED_MEMORY


def replica_name(number: int, judge: str = "judge") -> str:
    """Return the name of a replica, counted from 1; a named judge's has a dot, for its name may hold a hyphen."""
    if number == 1:
        return judge
    return f"{judge}{'.' if '.' in judge else '-'}{number}"
