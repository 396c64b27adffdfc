"""Start a launcher, send it programs, and watch the processes that run them.

A launcher (`inside.launcher`) is a process that forks a confined process for each program. Runners use this module.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from rewardstack.errors import ConfigError
from rewardstack_rules.code.inside.processes import FIXED, TICK, StallDetector, allowed_tasks
from rewardstack_rules.isolation.process import cpu_seconds, resident_bytes

SCRIPT = Path(__file__).with_name("inside") / "launcher.py"
MESSAGE_BYTES = 4096
START_SECONDS = 60
"""Seconds that a launcher may take to start."""
OUTPUT_BYTES = 16 << 20
SLACK_BYTES = 64 << 20
"""Bytes of memory for the interpreter itself, in addition to the program's limit."""
STARVED = 10.0
"""A program that gets too little CPU time is killed after `STARVED * (its CPU limit + START)` seconds."""
START = 1.0
"""Seconds that a program may take to start."""
INHERITED = ("LD_LIBRARY_PATH", "TMPDIR")
"""Environment variables that a launcher inherits from the runner."""
MFD_EXEC = 0x10
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
"""Seals after which no process can change a memory file."""


class LauncherDiedError(Exception):
    """The launcher died, and its processes with it."""


class SandboxError(Exception):
    """A process could not be started, confined or run to its end, and its program is not the cause."""


@dataclass(slots=True)
class Process:
    """A program to run, and its result.

    Args:
        program: what the launcher runs: `test` or `check` for the function of this name in `inside.tester`, or
            `script`, `call`, `serve`, `binary` or `build` for that in `inside.programs`.
        fds: descriptors of the program's memory files; the caller closes them.
        cpu: limit of CPU time, in seconds.
        memory: limit of memory, in bytes.
        options: options of the program, such as the name of the function to call.
        output: limit of each file that the program writes, in bytes.
        ends: sockets whose descriptors are passed after `fds`. The runner then closes its copies, so that the peer
            notices when the program's process exits.
        status: exit status; negative for a signal, None while it runs.
        used: CPU seconds that were used.
        peak: peak memory, in bytes.
        killed: why it was killed; empty if it was not killed. For `asleep` and `starved`, see `StallDetector.check`.
            `ended` means that the main process of `Launcher.run` had ended, or that a process had exceeded its limit
            of CPU time or memory.
    """

    program: str
    fds: list[int]
    cpu: float
    memory: int
    options: Mapping[str, Any] = field(default_factory=dict)
    ends: Sequence[socket.socket] = ()
    output: int = OUTPUT_BYTES
    status: int | None = None
    used: float = 0.0
    peak: int = 0
    killed: str = ""


class Launcher(Protocol):
    """Runs processes. `LocalLauncher` runs them on this machine, `fusion.FusionLauncher` on SandboxFusion.

    Attributes:
        is_shared: whether processes of others count toward the limit of threads of its programs.
    """

    is_shared: bool

    def start(self) -> None:
        """Make the launcher ready to run processes; do nothing if it is ready.

        Raises:
            ConfigError: programs cannot be run here.
            LauncherDiedError: the launcher ended or timed out without a message.
        """

    def stop(self) -> None:
        """Kill every process that the launcher runs, and release its resources."""

    def run(self, processes: Sequence[Process], wall: float) -> None:
        """Run processes together until all have ended, and set the result of each.

        Args:
            processes: the processes to run. The last one is the main process: when it ends, the others are killed.
            wall: total seconds during which all processes may be asleep at the same time.

        Raises:
            LauncherDiedError: the launcher died.
            SandboxError: a process could not be started or confined, or was not run to its end.
            ServiceError: a remote service gave no valid reply, after all retries.
        """


class LocalLauncher:
    """A launcher process on this machine; `start` starts it again after it has died.

    Args:
        python: the interpreter of candidates.
        boundary: `container` if the operator relies on the container for isolation, else empty.
        compiler: path of a compiler if the launcher only compiles; empty if it runs programs.
    """

    def __init__(self, python: str, boundary: str, compiler: str = "") -> None:
        self._command = [python, "-s", str(SCRIPT)]
        self._words = [boundary, compiler]
        self._folder = ""
        """The folder for the compiler's files, which `stop` removes; empty if the launcher runs no compiler."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._last = 0
        self.is_shared = True

    def start(self) -> None:
        """Start the launcher unless it is running.

        Raises:
            ConfigError: programs cannot be confined here, or the interpreter cannot be used.
            LauncherDiedError: the launcher ended or timed out without a message.
        """
        if self._control is not None:
            return
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*self._command, str(theirs.fileno()), str(os.getpid()), *self._words],
                    env=inherited | FIXED,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                control.close()
                raise ConfigError(f"CODE_PYTHON: {self._command[0]}: {error.strerror}", "CODE_PYTHON") from error
        self._control = control
        words = self._first_words(control)
        if not words:
            self.stop()
            raise LauncherDiedError(
                f"CODE_PYTHON: {self._command[0]}: the launcher ended or did not answer within {START_SECONDS} s"
            )
        if words[0] != "ready":
            self.stop()
            raise ConfigError(f"CODE: programs cannot be run here: {words[1]}", "CODE")
        _, self._folder, self.is_shared = words

    @staticmethod
    def _first_words(control: socket.socket) -> list[Any]:
        control.settimeout(START_SECONDS)
        with contextlib.suppress(OSError):
            words: list[Any] = json.loads(control.recv(MESSAGE_BYTES) or "[]")
            control.settimeout(None)
            return words
        return []

    def stop(self) -> None:
        """Kill the launcher and every process that it runs."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, processes: Sequence[Process], wall: float) -> None:
        """Run processes, and set their results; arguments are those of `Launcher.run`.

        Raises:
            LauncherDiedError: the launcher died.
            SandboxError: a process could not be forked or confined.
        """
        assert self._control is not None
        try:
            _Watch(self._control, self._ids(processes), wall, self.is_shared).run()
        except OSError as error:
            self.stop()
            raise LauncherDiedError from error
        except (LauncherDiedError, SandboxError):
            self.stop()
            raise

    def _ids(self, processes: Sequence[Process]) -> dict[int, Process]:
        numbered = {self._last + at: one for at, one in enumerate(processes, 1)}
        self._last += len(processes)
        return numbered


class _Watch:
    """Runs and watches the processes of one test.

    Processes are killed as `starved` if they run longer than `STARVED * (their highest CPU limit + START)` seconds.

    Args:
        control: the socket to the launcher.
        processes: the processes by id; the one with the highest id is the main process.
        wall: total seconds during which all processes may be asleep at the same time.
        is_shared: whether processes of others count toward the limit of threads.
    """

    def __init__(self, control: socket.socket, processes: dict[int, Process], wall: float, is_shared: bool) -> None:
        self._control = control
        self._processes = processes
        self._main = max(processes)
        self._left = set(processes)
        self._wall = wall
        self._timeout = STARVED * (max(one.cpu for one in processes.values()) + START)
        self._pids: dict[int, int] = {}
        self._is_shared = is_shared

    def run(self) -> None:
        for ident, process in self._processes.items():
            limits = {
                "cpu": process.cpu,
                "memory": process.memory,
                "output": process.output,
                "tasks": allowed_tasks(is_shared=self._is_shared),
            }
            words = [ident, process.program, limits, process.options]
            fds = [*process.fds, *(end.fileno() for end in process.ends)]
            socket.send_fds(self._control, [json.dumps(words).encode()], fds)
            for end in process.ends:
                end.close()
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        stall = StallDetector(self._wall, self._timeout)
        while self._left:
            if poll.poll(TICK * 1000):
                self._take(json.loads(self._control.recv(MESSAGE_BYTES) or "[]"))
                continue
            now = time.monotonic()
            used = {pid: cpu_seconds(pid) for pid in self._pids.values()}
            stalled = stall.check(now, used)
            self._ask_pids()
            if any(self._exceeds_limit(self._processes[ident], pid, used[pid]) for ident, pid in self._pids.items()):
                self._kill("ended")
            if stalled:
                self._kill(stalled)

    @staticmethod
    def _exceeds_limit(process: Process, pid: int, used: float) -> bool:
        return used > process.cpu or resident_bytes(pid) > process.memory + SLACK_BYTES

    def _take(self, words: list[Any]) -> None:
        if not words:
            raise LauncherDiedError
        ident, what, *rest = words
        if what == "fault":
            raise SandboxError(rest[0])
        if what == "pid":
            if rest[0]:
                self._pids[ident] = rest[0]
            return
        process = self._processes[ident]
        process.status, process.used, process.peak = rest
        self._pids.pop(ident, None)
        self._left.discard(ident)
        if ident == self._main:
            self._kill("ended")

    def _ask_pids(self) -> None:
        for ident in self._left - self._pids.keys():
            self._control.send(json.dumps(["pid", ident]).encode())

    def _kill(self, why: str) -> None:
        for ident in self._left:
            self._processes[ident].killed = self._processes[ident].killed or why
            self._control.send(json.dumps(["kill", ident]).encode())


def memory_file(data: bytes) -> int:
    """Return the descriptor of a memory file with this content; it is sealed, so no process can change it."""
    fd = os.memfd_create("rewardstack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING | _executable())
    write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@lru_cache
def _executable() -> int:
    """Return MFD_EXEC, which makes a memory file executable even if `vm.memfd_noexec` is 1; 0 before Linux 6.3."""
    with contextlib.suppress(OSError):
        os.close(os.memfd_create("rewardstack", MFD_EXEC))
        return MFD_EXEC
    return 0


def empty_file() -> int:
    """Return the descriptor of an empty memory file, for the output of a process."""
    return os.memfd_create("rewardstack", os.MFD_CLOEXEC)


def write(fd: int, data: bytes) -> None:
    """Write all bytes to a memory file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def content(fd: int, most: int | None = OUTPUT_BYTES) -> bytes:
    """Return the content of a memory file, up to `most` bytes; all of it if `most` is None."""
    size = os.fstat(fd).st_size
    return os.pread(fd, size if most is None else min(size, most), 0)


@contextlib.contextmanager
def closing(fd: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


KILLED = -signal.SIGKILL
