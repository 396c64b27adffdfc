"""The supervisor's objects for a child (`Child`) and for the task that it runs (`Task`)."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from rewardstack_rules.isolation.connection import FrameConnection
from rewardstack_rules.isolation.frames import Frame, Kind
from rewardstack_rules.isolation.process import FAIR_SHARE, cpu_seconds, state
from rewardstack_rules.isolation.zygote_link import ZygoteLink

START_SECONDS = 60.0
"""Startup timeout of a child, in seconds."""


class ChildPool(Enum):
    """The pool of a child. Slow tasks run in the slow pool, at a lower priority."""

    FAST = "fast"
    SLOW = "slow"


class Task:
    """One call of the entry.

    Args:
        ident: the supervisor's number for the task.
        body: the argument of the entry, as JSON.
        seconds: how long the task may still run.
        reply: called with the result, as JSON.
        stop_if_slow: whether to stop the task once it counts as slow.
        tenant: owner of the task; only a shared child runs tasks of more than one tenant.

    `progress` is the last that a child has reported of the task, from which another child can continue; empty for none.
    `child_died` means that a child has died during this task. The task is then run again by a second child, but not by
    a third.
    """

    __slots__ = (
        *("body", "child", "child_died", "dropped", "id", "progress", "reply", "seconds", "stop_if_slow", "tenant"),
    )

    def __init__(
        self, ident: int, body: bytes, seconds: float, reply: Callable[[bytes], None], stop_if_slow: bool, tenant: bytes
    ) -> None:
        self.id = ident
        self.body = body
        self.seconds = seconds
        self.reply = reply
        self.stop_if_slow = stop_if_slow
        self.tenant = tenant
        self.progress = b""
        self.dropped = False
        self.child_died = False
        self.child: Child | None = None


class ChildOwner(Protocol):
    """The object that handles the frames of a child: the scheduler."""

    def child_frame(self, child: Child, frame: Frame) -> None:
        """Handle a frame of the child."""

    def child_disconnected(self, child: Child) -> None:
        """Handle the end of the child's connection."""


class Child(FrameConnection):
    """One child, from its fork until its death.

    Args:
        ident: the supervisor's number for the child, not its process id.
        pool: the child's pool.
        owner: handles the frames of the child.
        limit: maximum size of a result, in bytes.
        shared: whether tenants share the child.

    `tenant` is the owner of the child's tasks, None before the first task and for a shared child. `taken_at` is the
    time when the first task of this tenant started, `freed_at` the time when the child last became idle. `round` is the
    scheduler's round in which the child was started.
    """

    def __init__(self, ident: int, pool: ChildPool, owner: ChildOwner, limit: int, shared: bool = False) -> None:
        super().__init__(limit)
        self.id = ident
        self.pool = pool
        self.round = 0
        self.task: Task | None = None
        self.tenant: bytes | None = None
        self.taken_at = self.freed_at = 0.0
        self.alarm: asyncio.TimerHandle | None = None
        self.was_ready = self.disconnected = self.exited = False
        self._owner = owner
        self._shared = shared
        self._closed = False
        self._pid = 0
        self._started = self._cpu_before = 0.0
        self._connecting: asyncio.Task[object] | None = None

    def connect(self, loop: asyncio.AbstractEventLoop, zygote: ZygoteLink) -> None:
        """Make the zygote fork the child, and connect to it through a new socket pair."""
        ours, theirs = socket.socketpair()
        with theirs:
            zygote.fork(self.id, theirs, low_priority=self.pool is ChildPool.SLOW)
        self._connecting = loop.create_task(loop.create_unix_connection(lambda: self, sock=ours))
        self.alarm = loop.call_later(START_SECONDS, self.abort)

    def run(self, task: Task) -> None:
        """Send a task to the child and start measuring its time.

        If tenants do not share the child, its first task sets its tenant.
        """
        self.task = task
        task.child = self
        self._started, self._cpu_before = time.monotonic(), cpu_seconds(self._pid)
        if self.tenant is None and not self._shared:
            self.tenant, self.taken_at = task.tenant, self._started
        if task.progress:
            self.send(Frame(Kind.PROGRESS, task.id, task.progress))
        self.send(Frame(Kind.TASK, task.id, task.body, task.seconds))

    def elapsed(self) -> float:
        """Return the seconds since the child's task started."""
        return time.monotonic() - self._started

    def cpu_shortfall(self, seconds: float) -> float:
        """Return how many CPU seconds the child's task lacks for its fair share.

        Args:
            seconds: the fair share is `FAIR_SHARE` times this number of seconds.

        Returns:
            The missing CPU seconds; 0 or less if the task has had its fair share; also 0 if the child neither runs nor
            waits for a core now, because then no other process takes CPU time from it.
        """
        if state(self._pid) != "R":
            return 0.0
        return FAIR_SHARE * seconds - (cpu_seconds(self._pid) - self._cpu_before)

    def release(self) -> None:
        """Detach the child's task and cancel its timer."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
        if self.task is not None:
            self.task.child = None
            self.task = None

    def close(self) -> None:
        """Close the connection and ignore further frames of the child."""
        self._closed = True
        self.abort()

    def frame_received(self, frame: Frame) -> None:
        """Pass a frame of the child to the owner."""
        if self._closed:
            return
        if frame.kind is Kind.READY and self.was_ready:
            self.abort()  # a child sends READY only once, so a task must have written this one to the socket
            return
        if frame.kind is Kind.READY:
            self.release()
            self.was_ready, self._pid = True, frame.id
        self._owner.child_frame(self, frame)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport, or abort it if the child has been closed before it connected."""
        super().connection_made(transport)
        if self._closed:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the owner, unless this side closed the connection."""
        if not self._closed:
            self._owner.child_disconnected(self)
