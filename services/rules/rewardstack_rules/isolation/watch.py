"""Detects hung processes: stopped, or stuck in their code or in the kernel.

`Watchdog` counts how long a process has been silent. The supervisor watches its zygote. The process that forked the
supervisor watches the supervisor (`fork_watched`), and kills it if it hangs; to its clients it has then died.
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
"""Seconds of a tick; a tick without a heartbeat is silent."""
HUNG_TICKS = 4
"""Number of silent ticks after which a process counts as hung."""
BEAT = 0.5
"""Seconds between two heartbeats."""

PULSE_FD = 3

logger = logging.getLogger(__name__)


class Watchdog:
    """Counts the ticks in which a process sent no heartbeat although it could.

    Ticks of the watching process are counted, not seconds: if both processes were stopped, for example with a suspended
    machine, the watched one does not count as hung. Ticks in which it waited for a core or a disk are not counted.

    Args:
        pid: id of the watched process, which must not be reaped meanwhile.
        ticks: number of silent ticks after which the process counts as hung.
    """

    def __init__(self, pid: int, ticks: int = HUNG_TICKS) -> None:
        self.ticks = ticks
        self._pid = pid
        self._silent = 0
        self._then, self._cpu_then = time.monotonic(), cpu_seconds(pid)

    def heard(self) -> None:
        """Reset the count after a heartbeat."""
        self._silent = 0

    def is_hung(self) -> bool:
        """Count a silent tick, and return whether the process is hung; call it once per tick without a heartbeat."""
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        starved = cpu - self._cpu_then < FAIR_SHARE * (now - self._then)
        self._then, self._cpu_then = now, cpu
        if not (starved and state(self._pid) in ("R", "D")):
            self._silent += 1
        return self._silent >= self.ticks


def beat(loop: asyncio.AbstractEventLoop, pulse: int) -> None:
    """Send a heartbeat now, and another one every `BEAT` seconds.

    Args:
        loop: the event loop that sends the heartbeats, as long as it is not blocked.
        pulse: write end of a non-blocking pipe.
    """
    with contextlib.suppress(BlockingIOError):  # the pipe is full, because the watching process is stopped
        os.write(pulse, b".")
    loop.call_later(BEAT, beat, loop, pulse)


def fork_watched(what: str) -> int:
    """Fork, and return only in the new process; the original one watches it, kills it if it hangs, and exits after it.

    If the original process is killed, the new one dies, too, so that nothing runs unwatched.

    Args:
        what: name of the new process in the log.

    Returns:
        The pipe for heartbeats, which the new process must pass to `beat`.
    """
    heard, pulse = os.pipe()
    watcher, pid = os.getpid(), os.fork()
    if pid == 0:
        die_with_parent(watcher)
        os.close(heard)
        os.set_blocking(pulse, False)
        return pulse
    adopt_orphans()
    os.dup2(heard, PULSE_FD)
    close_from(PULSE_FD + 1)
    if _falls_silent(PULSE_FD, Watchdog(pid)):
        logger.error("%s hung: killed after %g s without a heartbeat, will be replaced", what, HUNG_TICKS * TICK)
        os.kill(pid, signal.SIGKILL)
    end_children()  # the watched process and its descendants
    os._exit(0)


def _falls_silent(heard: int, watchdog: Watchdog) -> bool:
    """Wait until the watched process hangs (return True) or ends (return False)."""
    poll = select.poll()
    poll.register(heard, select.POLLIN)
    while True:
        if not poll.poll(TICK * 1000):
            if watchdog.is_hung():
                return True
        elif os.read(heard, 4096):
            watchdog.heard()
        else:
            return False
