"""The supervisor's client of the zygote: start it, send commands to it, and detect when it dies or hangs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
from typing import Protocol

from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.process import end_children
from rewardstack_rules.isolation.watch import HUNG_TICKS, TICK, Watchdog
from rewardstack_rules.isolation.zygote import MESSAGE_BYTES
from rewardstack_rules.process import module_command

START_TICKS = 60
"""Number of silent ticks (`watch.TICK`) that a zygote may take to load the entry."""

logger = logging.getLogger(__name__)


class ZygoteOwner(Protocol):
    """The object that handles events of the zygote: the scheduler."""

    def zygote_ready(self) -> None:
        """Handle a zygote that accepts commands."""

    def zygote_broken(self, message: str) -> None:
        """Handle a zygote that could not load the entry and has ended."""

    def zygote_died(self) -> None:
        """Handle the death of the zygote and of its children."""

    def child_exited(self, ident: int) -> None:
        """Handle the death of a child, which has been reaped."""


class ZygoteLink:
    """Starts and controls one zygote at a time.

    Args:
        config: the entry and the limits.
        owner: notified of the zygote's events.
        loop: the supervisor's event loop.
    """

    def __init__(self, config: IsolationConfig, owner: ZygoteOwner, loop: asyncio.AbstractEventLoop) -> None:
        self._config = config
        self._owner = owner
        self._loop = loop
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._watchdog: Watchdog | None = None

    def start(self) -> None:
        """Start a zygote. The owner is notified once it is ready."""
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = module_command("rewardstack_rules.isolation.zygote")
            arguments = [str(theirs.fileno()), str(os.getpid()), self._config.to_json()]
            self._process = subprocess.Popen(
                command + arguments, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        control.setblocking(False)
        self._control = control
        self._loop.add_reader(control, self._listen)
        self._watchdog = Watchdog(self._process.pid, START_TICKS)
        self._watch(self._watchdog)

    def fork(self, ident: int, sock: socket.socket, low_priority: bool) -> None:
        """Make the zygote fork a child with this socket."""
        self._command(["fork", ident, low_priority], [sock.fileno()])

    def kill(self, ident: int) -> None:
        """Kill a child, unless it has already ended."""
        self._command(["kill", ident])

    def renice(self, ident: int) -> None:
        """Lower the priority of a child."""
        self._command(["renice", ident])

    def stop(self) -> None:
        """Kill and reap the zygote, its children, and all processes that they started."""
        if self._control is not None:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._control = None
        self._watchdog = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        end_children()  # the supervisor has adopted the zygote's children and the programs that they started

    def _watch(self, watchdog: Watchdog) -> None:
        """Ping the zygote every tick until it is stopped. If it hangs, stop it and notify the owner."""
        if watchdog is not self._watchdog or self._control is None:
            return
        if watchdog.is_hung():
            logger.error("the zygote of %s hung: killed, will be replaced", self._config.entry)
            self._handle_death(self._control)
            return
        self._command(["ping", 0])
        self._loop.call_later(TICK, self._watch, watchdog)

    def _command(self, words: list[object], fds: list[int] | None = None) -> None:
        if self._control is None:
            return
        try:
            socket.send_fds(self._control, [json.dumps(words).encode()], fds or [])
        except BlockingIOError:  # the socket is full, because the zygote is stopped; replace the zygote
            self._loop.call_soon(self._handle_death, self._control)
        except OSError:  # the zygote is dead; read the messages that it sent before
            self._loop.call_soon(self._listen)

    def _listen(self) -> None:
        control = self._control
        while control is not None and control is self._control:
            try:
                message = control.recv(MESSAGE_BYTES)
            except BlockingIOError:
                return
            except ConnectionResetError:  # the zygote died before it read a ping; read its earlier messages
                continue
            except OSError:
                message = b""
            if not message:
                self._handle_death(control)
                return
            self._handle_message(*json.loads(message))

    def _handle_message(self, word: str, *rest: object) -> None:
        assert self._watchdog is not None
        self._watchdog.record_heartbeat()
        if word == "ready":
            self._watchdog.ticks = HUNG_TICKS
            self._owner.zygote_ready()
        elif word == "alive":
            return
        elif word == "exited":
            self._owner.child_exited(int(str(rest[0])))
        else:
            self.stop()
            self._owner.zygote_broken(str(rest[0]))

    def _handle_death(self, control: socket.socket) -> None:
        if control is self._control:
            self.stop()
            self._owner.zygote_died()
