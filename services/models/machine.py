"""What this machine has for model servers: GPUs, free memory, and a processor that vLLM runs on."""

from __future__ import annotations

import csv
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from services.stack.errors import StackError

GIB = 2**30
MEMINFO = Path("/proc/meminfo")
CPUINFO = Path("/proc/cpuinfo")
CGROUP = Path("/sys/fs/cgroup")
NVIDIA_SMI_SECONDS = 20
X86_FLAGS = ("avx2", "avx512f")


class Gpu(NamedTuple):
    """One GPU.

    Args:
        name: by which CUDA_VISIBLE_DEVICES knows it: its index, or whatever that variable calls it.
        memory: bytes.
    """

    name: str
    memory: int


def gpus(environ: Mapping[str, str] = os.environ) -> list[Gpu]:
    """The NVIDIA GPUs that this process may use; empty where there is none or CUDA_VISIBLE_DEVICES hides them."""
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    query = [program, "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return visible(done.stdout, environ.get("CUDA_VISIBLE_DEVICES"))


def visible(listed: str, visible: str | None) -> list[Gpu]:
    """The GPUs of nvidia-smi's list that a value of CUDA_VISIBLE_DEVICES leaves; all of them for None."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(listed.splitlines()) if len(row) == 3]
    memory = {name: int(mebibytes) * 2**20 for index, uuid, mebibytes in rows for name in (index, uuid)}
    names = [index for index, _, _ in rows] if visible is None else [name.strip() for name in visible.split(",")]
    return [Gpu(name, memory[name]) for name in names if name in memory]


def free_memory() -> int:
    """Bytes that can be had without swapping: of the machine, or of the container's limit where that is less."""
    for line in MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) * 1024, _left_in_container())
    return 0


def _left_in_container() -> int:
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
    except OSError:
        return 2**63
    return 2**63 if limit == "max" else int(limit) - used


def runs_vllm() -> bool:
    """Whether the processor can run vLLM: on x86 it needs AVX2 or AVX-512."""
    if platform.machine() != "x86_64":
        return platform.machine() == "aarch64"
    flags = next((line for line in CPUINFO.read_text().splitlines() if line.startswith("flags")), "")
    return any(flag in flags.split() for flag in X86_FLAGS)


def shares(gpus: Sequence[Gpu], replicas: int, size: int) -> list[list[str]]:
    """The GPUs of each replica, by name; an empty list for each on a machine without any.

    Args:
        gpus: of the machine.
        replicas: that share them.
        size: GPUs that each of them takes.

    Raises:
        StackError: there are too few.
    """
    if not gpus:
        return [[] for _ in range(replicas)]
    require(gpus, replicas, size)
    return [[gpu.name for gpu in gpus[first : first + size]] for first in range(0, replicas * size, size)]


def require(gpus: Sequence[Gpu], replicas: int, size: int) -> None:
    """Check that these GPUs are enough; arguments as those of `shares`.

    Raises:
        StackError: there are too few.
    """
    if replicas * size > len(gpus):
        raise StackError(
            f"{replicas} replicas on {size} GPUs each need {replicas * size} GPUs, and {len(gpus)} can be used here",
            "ask for fewer replicas, or a smaller tensor parallel size",
        )
