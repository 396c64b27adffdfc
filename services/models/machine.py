"""Report the resources of this machine for model servers: GPUs, memory, and whether vLLM supports the CPU."""

from __future__ import annotations

import csv
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
"""Files of cgroup v2 and v1 with limit, usage and statistics, and the name of the file cache in the statistics."""
SHARED_MEMORY = Path("/dev/shm")
NVIDIA_SMI_SECONDS = 20
X86_FLAGS = ("avx2", "avx512f")
GPUS = ("--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits")
PART = re.compile(r"MIG \S+?\.(\d+)gb\S* +Device +\d+: \(UUID: (MIG-[^)\s]+)\)")
"""A line for a MIG device in the output of `nvidia-smi --list-gpus`, with its memory in GB and its UUID."""


class Gpu(NamedTuple):
    """A GPU or MIG device.

    Args:
        name: index or UUID of the device, as in CUDA_VISIBLE_DEVICES.
        memory: memory in bytes.
    """

    name: str
    memory: int


def gpus(environ: Mapping[str, str] = os.environ) -> list[Gpu]:
    """Return the NVIDIA GPUs that this process may use according to CUDA_VISIBLE_DEVICES."""
    program = shutil.which("nvidia-smi")
    if not program:
        return []
    names, listed = environ.get("CUDA_VISIBLE_DEVICES"), _listed(program, *GPUS)
    return visible(listed + (parts(_listed(program, "--list-gpus")) if "MIG-" in (names or "") else ""), names)


def parts(listed: str) -> str:
    """Convert the MIG devices in the output of `nvidia-smi --list-gpus` to the format of `nvidia-smi --query-gpu`."""
    return "".join(f"{uuid}, {uuid}, {int(memory) * 1024}\n" for memory, uuid in PART.findall(listed))


@lru_cache
def _listed(program: str, *query: str) -> str:
    """Return the output of nvidia-smi, which runs once per process; empty if it fails or times out."""
    try:
        asked = subprocess.Popen([program, *query], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ""
    try:
        listed, _ = asked.communicate(timeout=NVIDIA_SMI_SECONDS)
    except subprocess.TimeoutExpired:
        asked.kill()  # do not wait: the process may never end
        say(f"warning: {program} does not answer in {NVIDIA_SMI_SECONDS} s: no GPU is used", sys.stderr)
        return ""
    return listed if asked.returncode == 0 else ""  # no driver, no GPU


def visible(listed: str, visible: str | None) -> list[Gpu]:
    """Return the GPUs in the output of nvidia-smi that CUDA_VISIBLE_DEVICES names; all of them if it is None."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(listed.splitlines()) if len(row) == 3]
    memory = {name: int(mebibytes) * 2**20 for index, uuid, mebibytes in rows for name in (index, uuid)}
    names = [index for index, _, _ in rows] if visible is None else [name.strip() for name in visible.split(",")]
    return [Gpu(name, memory[name]) for name in names if name in memory]


def free_memory() -> int:
    """Return the memory in bytes that is available without swapping, within the limit of the container if any."""
    for line in MEMINFO.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) * 1024, _left_in_container())
    return 0


def _left_in_container() -> int:
    for limit, current, stat, cached in LIMITS:
        try:
            most = (CGROUP / limit).read_text().strip()
            used = int((CGROUP / current).read_text())
            counts = dict(line.split() for line in (CGROUP / stat).read_text().splitlines())
        except OSError:
            continue
        return 2**63 if most == "max" else int(most) - used + int(counts.get(cached, 0))
    return 2**63


def shared_memory() -> int:
    """Return the size of /dev/shm in bytes; 0 if there is none. Containers have 64 MiB by default."""
    return shutil.disk_usage(SHARED_MEMORY).total if SHARED_MEMORY.is_dir() else 0


def runs_vllm() -> bool:
    """Return whether vLLM supports the CPU: on x86 it needs AVX2 or AVX-512."""
    if platform.machine() != "x86_64":
        return platform.machine() == "aarch64"
    flags = next((line for line in CPUINFO.read_text().splitlines() if line.startswith("flags")), "")
    return any(flag in flags.split() for flag in X86_FLAGS)


def shares(gpus: Sequence[Gpu], replicas: int, size: int) -> list[list[str]]:
    """Return the names of the GPUs of each replica; on a machine without GPUs, an empty list for each replica.

    Args:
        gpus: GPUs of the machine.
        replicas: number of replicas.
        size: number of GPUs of each replica.

    Raises:
        StackError: there are too few GPUs.
    """
    if not gpus:
        return [[] for _ in range(replicas)]
    require(gpus, replicas, size)
    return [[gpu.name for gpu in gpus[first : first + size]] for first in range(0, replicas * size, size)]


def require(gpus: Sequence[Gpu], replicas: int, size: int) -> None:
    """Check that there are enough GPUs; the parameters are those of `shares`.

    Raises:
        StackError: there are too few GPUs.
    """
    if replicas * size > len(gpus):
        raise StackError(
            f"{replicas} replicas on {size} GPUs each need {replicas * size} GPUs, and {len(gpus)} can be used here",
            "ask for fewer replicas, or a smaller tensor parallel size",
        )
