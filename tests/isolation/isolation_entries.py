"""What the tests of the isolation run in children: entries that behave, and entries that do not."""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Generator
from typing import Any

from rewardstack_rules.isolation.child import SOCKET_FD
from rewardstack_rules.isolation.frames import Frame, Kind


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Does what the task's `do` says, with its `with`."""
    action = ACTIONS[task.get("do", "echo")]
    return {"value": action(task.get("with"))}


def steps(task: dict[str, Any]) -> Generator[dict[str, Any], None, dict[str, Any]]:
    """Report progress until there is a file; return how far the task was when this process got it."""
    first = done = task.get("progress", {"done": 0})["done"]
    while not os.path.exists(task["with"]):
        time.sleep(0.05)
        done += 1
        yield {"done": done}
    return {"value": first}


def loop(_: Any) -> None:
    """Never ends, in Python."""
    while True:
        pass


def leave_behind(_: Any) -> int:
    """Start a long-running program and return its process ID."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True).pid


def hang(_: Any) -> int:
    """Hardly ever ends, in native code that looks at no signal."""
    return 9**9**9


def bomb(_: Any) -> int:
    """Asks for memory until there is none."""
    hoard = [b"x"]
    while True:
        hoard.append(hoard[-1] * 2)


def swallowed_bomb(_: Any) -> str:
    """A library that takes a MemoryError for an answer."""
    try:
        bomb(None)
    except MemoryError:
        return "swallowed"
    return "unreachable"


def leak(megabytes: int) -> int:
    """Grows the child, and says which it is."""
    KEPT.append(b"x" * (megabytes << 20))
    return os.getpid()


def chatter(text: str) -> str:
    """Writes wherever it can."""
    print(text, flush=True)
    print(text, file=sys.stderr, flush=True)
    os.write(1, text.encode())
    return text


def refuse(message: str) -> None:
    """Raises."""
    raise ValueError(message)


def descriptors(_: Any) -> list[str]:
    """What the child's open file descriptors are."""
    listed = os.listdir("/proc/self/fd")
    return sorted(
        os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")
    )


def burn(seconds: float) -> float:
    """Uses a core for so long, and says how long it took."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        pass
    return time.monotonic() - start


def sleep(seconds: float) -> float:
    """Uses no core for so long."""
    time.sleep(seconds)
    return seconds


def wait_for(path: str) -> str:
    """Uses no core until there is such a file."""
    while not os.path.exists(path):
        time.sleep(0.01)
    return path


def nice_above(normal: int) -> int:
    """The priority of this process once it is above the normal one, or two minutes later."""
    end = time.monotonic() + 120
    while os.nice(0) <= normal and time.monotonic() < end:
        time.sleep(0.01)
    return os.nice(0)


def nice_after_work(seconds: float) -> int:
    """The priority of this process, after so long on a core, however long that takes."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass
    return os.nice(0)


def forge_ready(_: Any) -> None:
    """Writes to the socket on which its tasks come, as code that has got hold of it would; then never ends."""
    os.write(SOCKET_FD, Frame(Kind.READY, os.getpid()).encode())
    loop(None)


def forge_frame(fields: list[Any]) -> None:
    """Write a frame to the socket on which tasks come, as code that has got hold of it would; then never end."""
    kind, offset, text = fields
    # The supervisor numbers tasks from 1, and this is the first.
    os.write(SOCKET_FD, Frame(Kind[kind], 1 + offset, text.encode()).encode())
    loop(None)


def refuse_forks() -> None:
    """Let every second round of eight forks fail, as they do where there are too many processes for a moment.

    This is a warmup; it runs in the zygote.
    """
    fork, forks = os.fork, itertools.count()

    def fork_or_fail() -> int:
        if next(forks) // 8 % 2 == 0:
            raise BlockingIOError(errno.EAGAIN, "too many processes")
        return fork()

    os.fork = fork_or_fail


KEPT: list[bytes] = []

ACTIONS: dict[str, Any] = {
    "echo": lambda value: value,
    "leave_behind": leave_behind,
    "pid": lambda _: os.getpid(),
    "nice": lambda _: os.nice(0),
    "nice_above": nice_above,
    "wait_for": wait_for,
    "nice_after_work": nice_after_work,
    "environment": lambda _: sorted(os.environ),
    "threads": lambda _: len(os.listdir(f"/proc/{os.getppid()}/task")),
    "sleep": sleep,
    "exit": lambda status: os._exit(status),
    "leave": lambda status: sys.exit(status),
    "segfault": lambda _: ctypes.string_at(0),
    "big": lambda size: "x" * size,
    "set": lambda _: {1, 2},
    "loop": loop,
    "hang": hang,
    "bomb": bomb,
    "swallowed_bomb": swallowed_bomb,
    "leak": leak,
    "kept": lambda _: len(KEPT),
    "forge_ready": forge_ready,
    "forge_frame": forge_frame,
    "chatter": chatter,
    "refuse": refuse,
    "descriptors": descriptors,
    "burn": burn,
}
