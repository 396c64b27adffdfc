"""Start the product's processes as forks of a process that has imported what they import, which takes most of a start.

A fork runs a module as `python -m` does, with its own arguments, environment, working folder and output. Tests of the
commands themselves start new interpreters.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO

SCRIPT = Path(__file__).with_name("forking.py")


class Forked:
    """A module that runs in a fork; used like `subprocess.Popen`.

    Args:
        module: module to run.
        arguments: arguments of the command.
        cwd: working folder; None for that of this process.
        env: all environment variables.
        stdout: file for the standard output; None for none.
        stderr: file for the errors.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str] = (),
        *,
        cwd: Path | None = None,
        env: Mapping[str, str],
        stdout: IO[bytes] | None = None,
        stderr: IO[bytes],
    ) -> None:
        self.returncode: int | None = None
        self._status, status = os.pipe()
        command = {"module": module, "arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": dict(env)}
        with open(os.devnull, "wb") as nothing:
            files = (status, (stdout or nothing).fileno(), stderr.fileno())
            self.pid = _parent().fork(json.dumps(command).encode(), files)
        os.close(status)

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        if self.returncode is None and wait([self._status], 0):
            self.returncode = int(os.read(self._status, 16))
            os.close(self._status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended.

        Raises:
            subprocess.TimeoutExpired: it has not ended after so many seconds.
        """
        if self.returncode is None:
            wait([self._status], timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks: it ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen([sys.executable, SCRIPT], stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
        atexit.register(self._end)

    def fork(self, command: bytes, files: Sequence[int]) -> int:
        """Return the process id of a new fork."""
        with self._lock:
            socket.send_fds(self._control, [command], files)
            return int(self._control.recv(16))

    def _end(self) -> None:
        self._control.close()
        self._process.wait()


@cache
def _parent() -> _Parent:
    return _Parent()
