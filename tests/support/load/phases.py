"""What is done to a stack under load, one thing after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

EXCUSED_SECONDS = 2.0
"""After a disturbance that excuses failures, in which a failure is still its own."""
AFTER_SECONDS = 5.0
"""That a phase lasts at least once its disturbance is done."""


class Disturbance(NamedTuple):
    """Something that is done to the stack.

    Args:
        name: of it, in a few words.
        seconds: that the phase takes at least, from its beginning to the next one's.
        do: does it; returns when it is done.
        excused: whether a sample in flight meanwhile may fail.
    """

    name: str
    seconds: float
    do: Callable[[], None]
    excused: bool = False


class Phase(NamedTuple):
    """A disturbance that was, and when.

    Args:
        name: of the disturbance.
        begun: on the machine's monotonic clock.
        done: when the disturbance itself was over.
        ended: when the next phase began.
        excused: whether a sample in flight meanwhile may fail.
    """

    name: str
    begun: float
    done: float
    ended: float
    excused: bool

    def excuses(self, begun: float, ended: float) -> bool:
        """Whether a sample that was in flight in this time may have failed for this."""
        return self.excused and begun < self.done + EXCUSED_SECONDS and ended > self.begun


def disturb(
    disturbances: Sequence[Disturbance],
    after: float = AFTER_SECONDS,
    settle: Callable[[Disturbance, float], None] = lambda one, done: None,
) -> Iterator[Phase]:
    """Does one thing after the other; each phase when it has ended.

    Args:
        disturbances: in order.
        after: seconds that a phase lasts at least once its disturbance is done.
        settle: returns when a phase may end, given its disturbance and when that was done on the monotonic clock.
    """
    for one in disturbances:
        begun = time.monotonic()
        one.do()
        done = time.monotonic()
        time.sleep(max(after, begun + one.seconds - done))
        settle(one, done)
        yield Phase(one.name, begun, done, time.monotonic(), one.excused)
