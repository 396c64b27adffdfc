"""Detect hung processes. A process is hung if a signal has stopped it, or if its code or a system call never returns.

`Watchdog` counts the ticks in which a process sends no heartbeat. The supervisor watches its zygote. The process that
forked the supervisor (`fork_watched`) watches the supervisor, and kills it if it hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import time

from rewardstack_rules.isolation.process import (
    FAIR_SHARE,
    adopt_orphans,
    close_from,
    cpu_seconds,
    die_with_parent,
    end_children,
    state,
)

TICK = 1.0
"""Length of a tick, in seconds. A tick without a heartbeat is a silent tick."""
HUNG_TICKS = 4
"""Number of consecutive silent ticks after which a process counts as hung."""
HEARTBEAT_SECONDS = 0.5
"""Seconds between two heartbeats."""

PULSE_FD = 3
"""Number of the descriptor for heartbeats in the watching process, which closes all higher ones."""

logger = logging.getLogger(__name__)


class Watchdog:
    """Counts the ticks in which a process sent no heartbeat although it could run.

    It counts ticks of the watching process, not seconds: if both processes were stopped, e.g. because the machine was
    suspended, the watched process does not count as hung. Ticks in which the watched process waited for a core or a
    disk do not count.

    Args:
        pid: id of the watched process, which must not be reaped while it is watched.
        ticks: number of consecutive silent ticks after which the process counts as hung.
    """

    def __init__(self, pid: int, ticks: int = HUNG_TICKS) -> None:
        self.ticks = ticks
        self._pid = pid
        self._silent = 0
        self._then, self._cpu_then = time.monotonic(), cpu_seconds(pid)

    def record_heartbeat(self) -> None:
        """Reset the count of silent ticks."""
        self._silent = 0

    def is_hung(self) -> bool:
        """Count a silent tick, and return whether the process is hung. Call this once per tick without a heartbeat.

        The tick does not count if the process waited for a core or a disk.
        """
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        starved = cpu - self._cpu_then < FAIR_SHARE * (now - self._then)
        self._then, self._cpu_then = now, cpu
        if not (starved and state(self._pid) in ("R", "D")):
            self._silent += 1
        return self._silent >= self.ticks


def send_heartbeats(loop: asyncio.AbstractEventLoop, pulse: int) -> None:
    """Send a heartbeat now and every `HEARTBEAT_SECONDS` from now on.

    Args:
        loop: the event loop to watch; while it is blocked, it sends no heartbeat.
        pulse: write end of a non-blocking pipe.
    """
    with contextlib.suppress(BlockingIOError):  # the pipe is full, because the watching process is stopped
        os.write(pulse, b".")
    loop.call_later(HEARTBEAT_SECONDS, send_heartbeats, loop, pulse)


def fork_watched(what: str) -> int:
    """Fork, and return only in the new process.

    The original process watches the new process, kills it if it hangs, and exits once it has ended. If the original
    process is killed, the new process dies, too, so that it never runs unwatched.

    Args:
        what: name of the new process in the log.

    Returns:
        The pipe for heartbeats, which the new process must pass to `send_heartbeats`.
    """
    heartbeats, pulse = os.pipe()
    watcher, pid = os.getpid(), os.fork()
    if pid == 0:
        die_with_parent(watcher)
        os.close(heartbeats)
        os.set_blocking(pulse, False)
        return pulse
    adopt_orphans()
    os.dup2(heartbeats, PULSE_FD)
    close_from(PULSE_FD + 1)
    if _wait_until_hung(PULSE_FD, Watchdog(pid)):
        logger.error("%s hung: killed after %g s without a heartbeat, will be replaced", what, HUNG_TICKS * TICK)
        os.kill(pid, signal.SIGKILL)
    end_children()  # the watched process and its descendants
    os._exit(0)


def _wait_until_hung(heartbeats: int, watchdog: Watchdog) -> bool:
    """Wait until the watched process hangs or ends; return whether it hangs."""
    poll = select.poll()
    poll.register(heartbeats, select.POLLIN)
    while True:
        if not poll.poll(TICK * 1000):
            if watchdog.is_hung():
                return True
        elif os.read(heartbeats, 4096):
            watchdog.record_heartbeat()
        else:
            return False
