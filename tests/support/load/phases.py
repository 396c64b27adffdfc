"""Disturb a stack under load in several phases, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

EXCUSED_SECONDS = 2.0
"""Seconds after an excused disturbance in which failures are still excused."""
AFTER_SECONDS = 5.0
"""Minimum duration of a phase after its disturbance."""


class Disturbance(NamedTuple):
    """A planned disturbance of the stack, such as a restart.

    Args:
        name: description in a few words.
        seconds: minimum duration of its phase, including the disturbance.
        do: disturbs the stack, and returns when that is done.
        excused: whether samples in flight during the disturbance may fail.
    """

    name: str
    seconds: float
    do: Callable[[], None]
    excused: bool = False


class Phase(NamedTuple):
    """A disturbance that has happened; times are on the machine's monotonic clock.

    Args:
        name: name of the disturbance.
        begun: when the disturbance began.
        done: when the disturbance was over.
        ended: when the phase was over.
        excused: whether samples in flight during the disturbance may fail.
    """

    name: str
    begun: float
    done: float
    ended: float
    excused: bool

    def excuses(self, begun: float, ended: float) -> bool:
        """Return whether a sample that was in flight from `begun` to `ended` may have failed because of this phase."""
        return self.excused and begun < self.done + EXCUSED_SECONDS and ended > self.begun


def disturb(
    disturbances: Sequence[Disturbance],
    after: float = AFTER_SECONDS,
    settle: Callable[[Disturbance, float], None] = lambda one, done: None,
) -> Iterator[Phase]:
    """Disturb the stack in the given order, and yield each phase when it has ended.

    Args:
        disturbances: the disturbances.
        after: minimum seconds of a phase after its disturbance.
        settle: called at the end of each phase with the disturbance and the time when it was done; the phase ends when
            it returns.
    """
    for one in disturbances:
        begun = time.monotonic()
        one.do()
        done = time.monotonic()
        time.sleep(max(after, begun + one.seconds - done))
        settle(one, done)
        yield Phase(one.name, begun, done, time.monotonic(), one.excused)
