"""The supervisor's end of one child, and the task it runs."""

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
"""How long a child may take until it is ready; one that loads the entry by itself takes longest."""


class Lane(Enum):
    """How urgent a child's task is."""

    FAST = "fast"
    SLOW = "slow"


class Task:
    """One call of the entry.

    Args:
        ident: the supervisor's own number for it.
        body: the argument, as JSON.
        seconds: how long it may still run.
        reply: takes the result's JSON.
        brief: it is given up where it turns out to be slow.
        tenant: whose it is; no child has tasks of two tenants.

    `child_died` says that a child ended by itself over this task, which is given a second one and no third.
    """

    __slots__ = ("body", "brief", "child", "child_died", "dropped", "id", "reply", "seconds", "tenant")

    def __init__(
        self, ident: int, body: bytes, seconds: float, reply: Callable[[bytes], None], brief: bool, tenant: bytes
    ) -> None:
        self.id = ident
        self.body = body
        self.seconds = seconds
        self.reply = reply
        self.brief = brief
        self.tenant = tenant
        self.dropped = False
        self.child_died = False
        self.child: Child | None = None


class ChildOwner(Protocol):
    """The one who hears what a child says: the scheduler."""

    def child_frame(self, child: Child, frame: Frame) -> None:
        """The child has sent a frame."""

    def child_disconnected(self, child: Child) -> None:
        """The child's connection has ended."""


class Child(FrameConnection):
    """One child, from the fork until it is dead.

    Args:
        ident: the supervisor's own number for it; never a process id.
        lane: how urgent its tasks are.
        owner: hears what the child says.
        limit: largest result, in bytes.

    `tenant` is whose tasks it runs, None before the first; `taken_at` and `freed_at` say when it had that, and when it
    had no task any more.
    """

    def __init__(self, ident: int, lane: Lane, owner: ChildOwner, limit: int) -> None:
        super().__init__(limit)
        self.id = ident
        self.lane = lane
        self.task: Task | None = None
        self.tenant: bytes | None = None
        self.taken_at = self.freed_at = 0.0
        self.alarm: asyncio.TimerHandle | None = None
        self.was_ready = self.disconnected = self.exited = False
        self._owner = owner
        self._closed = False
        self._pid = 0
        self._started = self._cpu_before = 0.0
        self._connecting: asyncio.Task[object] | None = None

    def connect(self, loop: asyncio.AbstractEventLoop, zygote: ZygoteLink) -> None:
        """Has the child forked, at the other end of a new socket pair."""
        ours, theirs = socket.socketpair()
        with theirs:
            zygote.fork(self.id, theirs, niced=self.lane is Lane.SLOW)
        self._connecting = loop.create_task(loop.create_unix_connection(lambda: self, sock=ours))
        self.alarm = loop.call_later(START_SECONDS, self.abort)

    def run(self, task: Task) -> None:
        """Sends the child a task, whose time runs from now; its tenant is the child's from the first one on."""
        self.task = task
        task.child = self
        self._started, self._cpu_before = time.monotonic(), cpu_seconds(self._pid)
        if self.tenant is None:
            self.tenant, self.taken_at = task.tenant, self._started
        self.send(Frame(Kind.TASK, task.id, task.body, task.seconds))

    def elapsed(self) -> float:
        """Seconds since the child's task began."""
        return time.monotonic() - self._started

    def owed(self, seconds: float) -> float:
        """What the task lacks of a `FAIR_SHARE` of these seconds on a core; nothing where it does not ask for one.

        What is ordinary needs much less than that share, even in a fresh child.
        """
        if state(self._pid) != "R":
            return 0.0
        return FAIR_SHARE * seconds - (cpu_seconds(self._pid) - self._cpu_before)

    def release(self) -> None:
        """Takes the child's task away, and the timer that watched it."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
        if self.task is not None:
            self.task.child = None
            self.task = None

    def close(self) -> None:
        """Ends the connection; nothing that the child says is heard from now on."""
        self._closed = True
        self.abort()

    def frame_received(self, frame: Frame) -> None:
        """Hands the owner what the child says."""
        if self._closed:
            return
        if frame.kind is Kind.READY and self.was_ready:
            self.abort()  # what it runs has got hold of its socket
            return
        if frame.kind is Kind.READY:
            self.release()
            self.was_ready, self._pid = True, frame.id
        self._owner.child_frame(self, frame)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Is connected; too late where it was closed meanwhile."""
        super().connection_made(transport)
        if self._closed:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the owner."""
        if not self._closed:
            self._owner.child_disconnected(self)
