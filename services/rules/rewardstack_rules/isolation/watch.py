"""Notices a process that is there and does nothing: stopped, or stuck in its code or in the kernel.

`Watchdog` counts how long a process has been silent. The supervisor keeps one over its zygote, and the process that
forked the supervisor keeps one over that (`fork_watched`); whoever uses a supervisor that is ended so finds it dead.
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
"""Seconds after which somebody who said nothing was silent once."""
HUNG_TICKS = 4
"""Ticks of silence after which a process is taken for hung."""
BEAT = 0.5
"""Seconds between two signs of life."""

PULSE_FD = 3

logger = logging.getLogger(__name__)


class Watchdog:
    """How long a process has been silent though it could speak.

    Counted are turns of the one who watches, not seconds, so that nothing is taken for hung after both were stopped, as
    in a machine that slept. A turn in which the process waited for a core or for a disk is not counted.

    Args:
        pid: the process; of the same user, and not reaped before this ends.
        ticks: turns of silence after which it is hung.
    """

    def __init__(self, pid: int, ticks: int = HUNG_TICKS) -> None:
        self.ticks = ticks
        self._pid = pid
        self._silent = 0
        self._then, self._cpu_then = time.monotonic(), cpu_seconds(pid)

    def heard(self) -> None:
        """Notes a sign of life."""
        self._silent = 0

    def is_hung(self) -> bool:
        """Whether the process is hung; asked once a turn in which nothing was heard of it."""
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        starved = cpu - self._cpu_then < FAIR_SHARE * (now - self._then)
        self._then, self._cpu_then = now, cpu
        if not (starved and state(self._pid) in ("R", "D")):
            self._silent += 1
        return self._silent >= self.ticks


def beat(loop: asyncio.AbstractEventLoop, pulse: int) -> None:
    """Gives signs of life from now on.

    Args:
        loop: as long as its turns come round, it lives.
        pulse: write end of a pipe, non-blocking.
    """
    with contextlib.suppress(BlockingIOError):  # the other one is stopped, which is no reason to stop
        os.write(pulse, b".")
    loop.call_later(BEAT, beat, loop, pulse)


def fork_watched(what: str) -> int:
    """Goes on in a new process; this one kills that, with all below it, when it is hung, and ends with it.

    Where this process is killed, the new one dies with it: nothing runs unwatched.

    Args:
        what: names the new process in the log.

    Returns:
        What the new process gives to `beat`.
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
        logger.error("%s is hung: killed after %g s of silence, to be replaced", what, HUNG_TICKS * TICK)
        os.kill(pid, signal.SIGKILL)
    end_children()  # it, and what was below it
    os._exit(0)


def _falls_silent(heard: int, watchdog: Watchdog) -> bool:
    """Waits until the process at the other end is hung, or, which is False, has ended."""
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
