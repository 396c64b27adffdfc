"""The child process: run tasks one after another until a limit of tasks or memory growth is reached."""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NoReturn

from rewardstack_rules.confinement.confinement import Confinement
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.frames import Frame, Kind, dump, load, receive
from rewardstack_rules.isolation.process import (
    close_from,
    die_with_parent,
    limit_memory,
    peak_bytes,
    silence,
)

MESSAGE_LENGTH = 500
"""Maximum number of characters of an exception's message in a result."""

SOCKET_FD = 3

HINT = "a confined function cannot use the network, start programs, write files, or read files other than code"

Steps = Generator[dict[str, Any], None, dict[str, Any]]
Entry = Callable[[dict[str, Any]], dict[str, Any] | Steps]
"""Returns the result of a task, or a generator that yields how far the task is, and then returns the result.

If the task is stopped after it has yielded something, another child may continue it: what was yielded last is then the
field `progress` of the task.
"""


def become_child(
    sock: socket.socket, config: IsolationConfig, entry: Entry, confinement: Confinement | None, zygote: int
) -> NoReturn:
    """Turn a newly forked process into a child; never return.

    Args:
        sock: the socket on which tasks arrive.
        config: the child's limits.
        entry: the function to call.
        confinement: confinement of the child; None if it is not confined.
        zygote: process id of the zygote, which is the child's parent.
    """
    die_with_parent(zygote)
    os.dup2(sock.detach(), SOCKET_FD)
    close_from(SOCKET_FD + 1)
    silence(0, 1, 2)
    gc.enable()
    limit_memory(config.memory_bytes)
    tasks = socket.socket(fileno=SOCKET_FD)
    if confinement is not None:
        confinement.enter()
    _serve(tasks, config, entry)
    os._exit(0)


def _finish(steps: Steps, report: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Report what a generator yields, and return its result."""
    while True:
        try:
            report(next(steps))
        except StopIteration as end:
            result: dict[str, Any] = end.value
            return result


def describe(error: BaseException) -> str:
    """Return an exception as one line: its type, the first line of its message, and its notes in parentheses."""
    try:
        message = str(error).partition("\n")[0][:MESSAGE_LENGTH]
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        message = ""
    line = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return " ".join([line, *(f"({note})" for note in getattr(error, "__notes__", ()))])


def _serve(tasks: socket.socket, config: IsolationConfig, entry: Entry) -> None:
    """Run tasks until the supervisor closes the socket, or the child must be replaced."""
    initial_peak = peak_bytes()
    # A task that hits the memory limit may return a wrong result, because a library may catch the MemoryError. Buffers
    # grow by doubling, so an allocation can fail long before peak memory reaches the limit. Therefore, discard the
    # result if peak memory has grown by more than a quarter of the limit.
    discard_growth = config.memory_bytes // 4
    retire_growth = min(config.growth_bytes, discard_growth // 2)
    tasks.sendall(Frame(Kind.READY, os.getpid()).encode())
    for count in range(1, config.tasks_per_child + 1):
        task = receive(tasks, config.max_frame_bytes)
        progress = b""
        if task is not None and task.kind is Kind.PROGRESS:
            progress, task = task.body, receive(tasks, config.max_frame_bytes)
        if task is None:
            return
        body = _run(entry, task.body, progress, partial(_report, tasks, task.id), config)
        growth = peak_bytes() - initial_peak
        if growth > discard_growth:
            os._exit(1)
        is_last = count == config.tasks_per_child or growth > retire_growth
        tasks.sendall(Frame(Kind.LAST if is_last else Kind.RESULT, task.id, body).encode())
        if is_last:
            return


def _report(tasks: socket.socket, ident: int, progress: dict[str, Any]) -> None:
    tasks.sendall(Frame(Kind.PROGRESS, ident, dump(progress)).encode())


def _run(
    entry: Entry, body: bytes, progress: bytes, report: Callable[[dict[str, Any]], None], config: IsolationConfig
) -> bytes:
    """Run one task, and return its result or its error as the body of a frame."""
    try:
        result: Any = entry(load(body) | ({"progress": load(progress)} if progress else {}))
        if isinstance(result, Generator):
            result = _finish(result, report)
        if not isinstance(result, dict):
            raise TypeError(f"the function returned {type(result).__name__}, not dict")
        reply = dump(result)
        if len(reply) > config.max_frame_bytes:
            raise ValueError(f"a result of {len(reply)} bytes is over the limit of {config.max_frame_bytes}")
        return reply
    except MemoryError:
        os._exit(1)
    except BaseException as error:  # noqa: BLE001 - reported to the caller
        hint = f"; {HINT}" if config.confined and isinstance(error, PermissionError) else ""
        # `scoring.output` puts what the function printed into the attribute `__result__` of the exception.
        return dump({"error": "raised", "message": describe(error) + hint, **getattr(error, "__result__", {})})
