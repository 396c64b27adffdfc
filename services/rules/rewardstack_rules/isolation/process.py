"""Helpers for isolated processes: manage their lifetime and limits, measure their CPU time, and load functions."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FAIR_SHARE = 0.5
"""Share of a core. A runnable process that gets less than this share counts as waiting for other processes."""

NICE = 19
"""Niceness of children in the slow pool. A fast child on the same core gets 98 % of the core."""

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

_LIBC = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent dies; exit now if the parent is already dead."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def hide_memory() -> None:
    """Keep other processes of the same user from reading or tracing this one (prctl(2), PR_SET_DUMPABLE).

    Forked processes inherit this setting. A process that executes another program loses it.
    """
    _prctl(PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants, so that it can reap them."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans() -> None:
    """Reap the children of this process that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def end_children() -> None:
    """Kill and reap every child of this process; after `adopt_orphans`, every descendant."""
    own_pid = str(os.getpid())
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if _stat(pid)[1:2] == [own_pid]:
                    with contextlib.suppress(ProcessLookupError):  # the child has ended
                        os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def limit_memory(extra_bytes: int) -> None:
    """Limit the growth of the address space, disable core dumps, and make the OOM killer prefer this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # some sandboxes forbid this; the limit above still applies
        Path("/proc/self/oom_score_adj").write_text("1000")


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds that a process has used; 0 if it has ended."""
    clock = ctypes.c_int()
    if _LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
        return 0.0
    with contextlib.suppress(OSError):  # the process has just ended
        return time.clock_gettime(clock.value)
    return 0.0


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def state(pid: int) -> str:
    """Return the state of a process as a letter (proc_pid_stat(5)); empty if there is no such process.

    `R` means that it runs or waits for a core, `D` that it waits for a disk, `T` that it is stopped.
    """
    return next(iter(_stat(pid)), "")


def _stat(pid: int | str) -> list[str]:
    """Return the fields of proc_pid_stat(5), starting with the state; empty if there is no such process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def close_from(lowest: int) -> None:
    """Close every file descriptor with the number `lowest` or higher."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= lowest:
            with contextlib.suppress(OSError):  # the descriptor that listed the folder is already closed
                os.close(int(name))


def silence(*streams: int) -> None:
    """Redirect file descriptors to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(null, stream)
    os.close(null)


def load_function(path: str) -> Callable[..., Any]:
    """Import the function with the path `module:function`.

    Raises:
        ImportError: there is no such module.
        AttributeError: the module has no such function.
        Exception: anything that the module raises while it is imported.
    """
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
