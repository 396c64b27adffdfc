"""Let a runner run one test while the other runners of its pool wait.

A runner is an isolated process that runs the tests of the reward function `code` (package `code`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

_GATE, _RUNNING = os.memfd_create("gate"), os.memfd_create("running")
_MAKER = os.getpid()
"""Process id of the zygote, which forks the runners. The zygote creates the lock files when it imports this module.

Each runner opens these files itself. With the inherited descriptors, all runners would hold the same lock, because a
`flock` belongs to the open file description, which a process shares with its forks.
"""


class Turns:
    """One runner's access to the two locks that decide which runners may run tests.

    While a runner runs tests, it holds the lock `_running`: either shared with other runners, or exclusively. To get
    this lock, a runner must first get the lock `_gate`, which only one runner can hold. While a runner waits for the
    exclusive lock, it holds the gate, so that no other runner gets the shared lock.
    """

    def __init__(self) -> None:
        self._gate, self._running = (_open(fd) for fd in (_GATE, _RUNNING))

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Hold the shared lock: run tests while other runners of the pool may run theirs."""
        self._enter()
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the exclusive lock: run a test while no other runner runs one.

        Call this within `together`. Its shared lock is released during this block, and acquired again afterwards.
        """
        fcntl.flock(self._running, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._running, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            self._enter()

    def _enter(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._running, fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)


def _open(fd: int) -> int:
    return os.open(f"/proc/{_MAKER}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
