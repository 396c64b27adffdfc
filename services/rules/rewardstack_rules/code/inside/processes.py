"""The environment and limits of processes that run programs, and how to detect that they are asleep or starved."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Environment variables of the interpreter that runs programs."""
STACK_BYTES = 128 << 20
ADDRESS_SPACE = 1 << 30
"""Bytes of address space in addition to a program's memory limit: libraries reserve space that they never touch."""
MAX_TASKS = 1024
"""Number of threads that a program may have. If processes of others count toward the limit, it is raised by the number
of those on the machine when the program starts."""
TICK = 0.1
"""Seconds between two checks of a running process."""


def set_limits(limits: dict[str, Any], born: int) -> None:
    """Limit this process.

    Args:
        limits: `cpu` in seconds, `memory` and `output` in bytes, and `tasks`, the number of processes and threads of
            the user.
        born: bytes of address space that the process has before it runs a program.
    """
    space = born + limits["memory"] + ADDRESS_SPACE
    seconds = int(limits["cpu"]) + 1
    for name, soft, hard in (
        (resource.RLIMIT_AS, space, space),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, limits["output"], limits["output"]),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_STACK, STACK_BYTES, resource.RLIM_INFINITY),
        (resource.RLIMIT_NPROC, limits["tasks"], limits["tasks"]),
    ):
        most = resource.getrlimit(name)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = (most if one == resource.RLIM_INFINITY else min(one, most) for one in (soft, hard))
        resource.setrlimit(name, (soft, hard))


def address_space() -> int:
    """Return the bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def allowed_tasks(*, is_shared: bool = True) -> int:
    """Return the limit of processes and threads for a program that starts now.

    Args:
        is_shared: whether processes of others count toward it.
    """
    if not is_shared:
        return MAX_TASKS
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2]) + MAX_TASKS
    except (OSError, ValueError, IndexError):
        return 1 << 16


class TaskCounter:
    """Counts the processes and threads that have been started on the machine, or in the container, since its creation.

    The kernel numbers them in order, so no program can change the count.
    """

    def __init__(self) -> None:
        self._first = _last_task()

    def has_filled_limit(self) -> bool:
        """Return whether there were enough of them to exceed a limit of `allowed_tasks` that others share."""
        return (_last_task() - self._first) % _max_tasks() >= MAX_TASKS


def _last_task() -> int:
    try:
        return int(Path("/proc/loadavg").read_text().split()[4])
    except (OSError, ValueError, IndexError):
        return 0


def _max_tasks() -> int:
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_text())
    except (OSError, ValueError):
        return 1 << 22


def is_runnable(pid: int) -> bool:
    """Return whether any thread of a process is running, or waits for a core or a disk."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
    return False


class StallDetector:
    """Decides when to kill the running processes of a test because they are asleep or starved of CPU time.

    Args:
        wall: total seconds during which all processes may be asleep at the same time.
        timeout: seconds after which processes that have not ended count as starved: the machine is too busy.

    Attributes:
        checked: time of the last check, by the monotonic clock.
    """

    def __init__(self, wall: float, timeout: float) -> None:
        self._wall = wall
        self._timeout = timeout
        self._started = self.checked = time.monotonic()
        self._asleep = self._used = 0.0

    def check(self, now: float, used: Mapping[int, float]) -> str:
        """Return why to kill the processes: `asleep` or `starved`; empty to let them run. Call this once per `TICK`.

        Args:
            now: the time by the monotonic clock, taken before `used` is measured.
            used: CPU seconds that each running process has used so far, by process id.
        """
        before, self._used = self._used, sum(used.values())
        if used and self._used - before < TICK / 2 and not any(map(is_runnable, used)):
            self._asleep += now - self.checked
        self.checked = now
        if self._asleep > self._wall:
            return "asleep"
        return "starved" if now - self._started > self._timeout else ""
