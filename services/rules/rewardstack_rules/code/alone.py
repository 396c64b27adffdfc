"""Locks by which a runner can run one test while the other runners of its pool wait."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

_GATE, _RUNNING = os.memfd_create("gate"), os.memfd_create("running")
_MAKER = os.getpid()
"""The zygote, which forks the runners, creates the lock files when it imports this module. Each runner opens them
again, because a `flock` belongs to an open file description, which forked processes share."""


class Turns:
    """One runner's access to the locks that decide which runners may run tests.

    A runner that waits for the exclusive lock holds the gate, so that no further runner gets the shared lock meanwhile.
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

        Call this within `together`, whose shared lock is released meanwhile.
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
