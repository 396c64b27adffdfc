"""What a confined function should not do, and what it may."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from rewardstack_rules.isolation.child import SOCKET_FD

PTRACE_ATTACH = 16
F_SETOWN_EX, FIOSETOWN, SIOCSPGRP = 15, 0x8901, 0x8902
_LIBC = ctypes.CDLL(None, use_errno=True)


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Does what the task's `do` says to the file `with`."""
    ACTIONS[task["do"]](Path(task.get("with", "")))
    return {}


def connect(path: Path) -> None:
    """Reaches for an address over a socket that it has: the one on which its tasks come."""
    with socket.socket(fileno=os.dup(SOCKET_FD)) as given:
        if given.connect_ex(str(path)) == errno.EPERM:
            raise PermissionError(errno.EPERM, "connect")


def in_a_fork(_: Path) -> None:
    """Continues in another process."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def trace(_: Path) -> None:
    """Looks into its parent."""
    if _LIBC.ptrace(PTRACE_ATTACH, os.getppid(), None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def in_threads(_: Path) -> None:
    """Starts some threads, and waits for them."""
    done: list[int] = []
    threads = [threading.Thread(target=done.append, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(4))


def import_late(_: Path) -> None:
    """Imports what nobody has imported."""
    import wave

    assert wave


def through_a_pipe(_: Path) -> None:
    """Sends itself something."""
    reader, writer = os.pipe()
    os.write(writer, b"x")
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    os.close(writer)


def opened(path: Path, flags: int) -> None:
    """Opens a file."""
    os.close(os.open(path, flags))


ACTIONS: dict[str, Any] = {
    "socket": lambda _: socket.socket().close(),
    "unix_socket": lambda _: socket.socket(socket.AF_UNIX).close(),
    "connect": connect,
    "run": lambda _: subprocess.run(["true"], check=True),
    "fork": in_a_fork,
    "write": lambda path: path.write_text("broken"),
    "create": lambda path: tempfile.TemporaryFile(dir=path.parent).close(),
    "append": lambda path: path.open("a").close(),
    "truncate": lambda path: opened(path, os.O_RDONLY | os.O_TRUNC),
    "remove": lambda path: path.unlink(),
    "rename": lambda path: path.rename(path.with_name("other")),
    "make_folder": lambda path: path.with_name("folder").mkdir(),
    "change_mode": lambda path: path.chmod(0o700),
    "kill_parent": lambda _: os.kill(os.getppid(), signal.SIGSTOP),
    "trace": trace,
    "limit_others": lambda _: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3)),
    "name_machine": lambda _: socket.sethostname(socket.gethostname()),
    "own": lambda _: fcntl.fcntl(SOCKET_FD, fcntl.F_SETOWN, os.getppid()),
    "own_ex": lambda _: fcntl.fcntl(SOCKET_FD, F_SETOWN_EX, struct.pack("ii", 1, os.getppid())),
    "own_by_ioctl": lambda _: fcntl.ioctl(SOCKET_FD, FIOSETOWN, struct.pack("i", os.getppid())),
    "own_group_by_ioctl": lambda _: fcntl.ioctl(SOCKET_FD, SIOCSPGRP, struct.pack("i", os.getppid())),
    "choose_signal": lambda _: fcntl.fcntl(SOCKET_FD, fcntl.F_SETSIG, signal.SIGKILL),
    "threads": in_threads,
    "read": lambda path: path.read_text(),
    "import_late": import_late,
    "random": lambda _: random.SystemRandom().random(),
    "map_memory": lambda _: mmap.mmap(-1, 1 << 20).close(),
    "clock": lambda _: time.sleep(0.001),
    "list_folder": lambda path: list(path.parent.iterdir()),
    "pipe": through_a_pipe,
}
