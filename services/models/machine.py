"""Report the resources of this machine for model servers: GPUs, memory, and whether vLLM supports the CPU."""

from __future__ import annotations

import csv
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.space import GIB as GIB

MEMINFO = Path("/proc/meminfo")
CPUINFO = Path("/proc/cpuinfo")
CGROUP = Path("/sys/fs/cgroup")
LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""For cgroup v2 and v1: the files with limit, usage and statistics, and the name under which the statistics list the
file cache."""
SHARED_MEMORY = Path("/dev/shm")
NVIDIA_SMI_SECONDS = 20
X86_FLAGS = ("avx2", "avx512f")
GPU_QUERY = ("--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits")
MIG_DEVICE = re.compile(r"MIG \S+?\.(\d+)gb\S* +Device +\d+: \(UUID: (MIG-[^)\s]+)\)")
"""Matches a MIG device in the output of `nvidia-smi --list-gpus`; the groups are its memory in GB and its UUID."""


class Gpu(NamedTuple):
    """A GPU or MIG device.

    Args:
        name: index or UUID of the device, as in CUDA_VISIBLE_DEVICES.
        memory: memory in bytes.
    """

    name: str
    memory: int


def gpus() -> list[Gpu]:
    """Return the NVIDIA GPUs that CUDA_VISIBLE_DEVICES lets this process use."""
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    names, listed = os.environ.get("CUDA_VISIBLE_DEVICES"), _query_nvidia_smi(program, *GPU_QUERY)
    if "MIG-" in (names or ""):
        listed += mig_rows(_query_nvidia_smi(program, "--list-gpus"))
    return visible_gpus(listed, names)


def mig_rows(listed: str) -> str:
    """Convert MIG devices from the output of `nvidia-smi --list-gpus` to rows in the format of `--query-gpu`."""
    return "".join(f"{uuid}, {uuid}, {int(memory) * 1024}\n" for memory, uuid in MIG_DEVICE.findall(listed))


@lru_cache
def _query_nvidia_smi(program: str, *query: str) -> str:
    """Return the output of nvidia-smi; empty if it fails or times out. The output is cached."""
    try:
        process = subprocess.Popen([program, *query], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ""
    try:
        listed, _ = process.communicate(timeout=NVIDIA_SMI_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # do not wait: the process may never end
        say(f"warning: {program} does not answer in {NVIDIA_SMI_SECONDS} s: no GPU is used", sys.stderr)
        return ""
    return listed if process.returncode == 0 else ""  # nvidia-smi fails without a driver or a GPU


def visible_gpus(listed: str, variable: str | None) -> list[Gpu]:
    """Return the GPUs that a process may use.

    Args:
        listed: output of nvidia-smi.
        variable: value of CUDA_VISIBLE_DEVICES; None to return all GPUs.
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(listed.splitlines()) if len(row) == 3]
    memory = {name: int(mebibytes) * 2**20 for index, uuid, mebibytes in rows for name in (index, uuid)}
    names = [index for index, _, _ in rows] if variable is None else [name.strip() for name in variable.split(",")]
    return [Gpu(name, memory[name]) for name in names if name in memory]


def free_memory() -> int:
    """Return the bytes of memory that are available without swapping, within the container's limit if there is one."""
    for line in MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) * 1024, _free_in_container())
    return 0


def _free_in_container() -> int:
    for limit, current, stat, cached in LIMITS:
        try:
            maximum = (CGROUP / limit).read_text().strip()
            used = int((CGROUP / current).read_text())
            counts = dict(line.split() for line in (CGROUP / stat).read_text().splitlines())
        except OSError:
            continue
        return 2**63 if maximum == "max" else int(maximum) - used + int(counts.get(cached, 0))
    return 2**63


def shared_memory() -> int:
    """Return the size of /dev/shm in bytes; 0 if there is none. Containers have 64 MiB by default."""
    return shutil.disk_usage(SHARED_MEMORY).total if SHARED_MEMORY.is_dir() else 0


def supports_vllm() -> bool:
    """Return whether vLLM supports the CPU: 64-bit Arm, or x86 with AVX2 or AVX-512."""
    if platform.machine() != "x86_64":
        return platform.machine() == "aarch64"
    flags = next((line for line in CPUINFO.read_text().splitlines() if line.startswith("flags")), "")
    return any(flag in flags.split() for flag in X86_FLAGS)


def split_gpus(gpus: Sequence[Gpu], replicas: int, size: int) -> list[list[str]]:
    """Assign `size` GPUs to each replica, and return the GPU names of each replica; empty lists if there are no GPUs.

    Raises:
        StackError: there are too few GPUs.
    """
    if not gpus:
        return [[] for _ in range(replicas)]
    require_gpus(gpus, replicas, size)
    return [[gpu.name for gpu in gpus[first : first + size]] for first in range(0, replicas * size, size)]


def require_gpus(gpus: Sequence[Gpu], replicas: int, size: int) -> None:
    """Check that there are `size` GPUs for each replica.

    Raises:
        StackError: there are too few GPUs.
    """
    if replicas * size > len(gpus):
        raise StackError(
            f"{replicas} replicas x {size} GPUs need {replicas * size} GPUs, and {len(gpus)} can be used here",
            "set fewer replicas, or a smaller tensor parallel size",
        )
