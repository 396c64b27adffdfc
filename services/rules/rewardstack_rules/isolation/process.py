"""What a process of the isolation does to itself: ties its life to its parent's, limits itself, loads functions."""

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
"""Share of a core: who asks for one and has had less has waited for others."""

NICE = 19
"""How far slow children stand back: a fast one beside them gets 98 % of a core."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_LIBC = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when its parent dies; if the parent is gone already, this one ends now."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def adopt_orphans() -> None:
    """Children of a child that died become this process's own, so that it can reap them."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def reap_orphans() -> None:
    """Reaps the children of this process that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def end_children() -> None:
    """Kills and reaps every child of this process; where it adopts orphans, all that was below them as well."""
    me = str(os.getpid())
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if _stat(pid)[1:2] == [me]:
                    with contextlib.suppress(ProcessLookupError):  # it has ended
                        os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def limit_memory(extra_bytes: int) -> None:
    """The address space may grow by this much; no core files; the kernel's OOM killer takes this process first."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    bound = pages * resource.getpagesize() + extra_bytes
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # some sandboxes forbid it; the limit above holds all the same
        Path("/proc/self/oom_score_adj").write_text("1000")


def peak_bytes() -> int:
    """The most resident memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds(pid: int) -> float:
    """Seconds that a process has been on a core; 0 where it has ended."""
    clock = ctypes.c_int()
    if _LIBC.clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
        return 0.0
    with contextlib.suppress(OSError):  # it ended just now
        return time.clock_gettime(clock.value)
    return 0.0


def state(pid: int) -> str:
    """What a process does, as a letter (proc_pid_stat(5)); empty where there is none.

    R: it is on a core or waits for one; D: it waits for a disk; T: it is stopped.
    """
    return next(iter(_stat(pid)), "")


def _stat(pid: int | str) -> list[str]:
    """State, parent and what follows them in proc_pid_stat(5); empty where there is no such process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def close_from(lowest: int) -> None:
    """Closes every file descriptor from this one on."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= lowest:
            with contextlib.suppress(OSError):  # the one that listed them is closed by now
                os.close(int(name))


def silence(*streams: int) -> None:
    """Points these file descriptors at nothing."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in streams:
        os.dup2(null, stream)
    os.close(null)


def load_function(path: str) -> Callable[..., Any]:
    """The function that `module:function` names.

    Raises:
        ImportError, AttributeError: there is none; or whatever the module raises while it is imported.
    """
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
