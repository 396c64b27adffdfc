"""What is done to the stack under load, one thing after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.support.compose import ComposeStack

EXCUSED_SECONDS = 2.0
"""After the gateway's restart, in which a failure is still its own."""


AFTER_SECONDS = 5.0
"""That a phase goes on at least once its disturbance is done."""
SPREAD_SECONDS = 90.0
"""That it goes on at most until the gateway has asked every replica of the judge, which a busy machine delays."""


class Disturbance(NamedTuple):
    """Something that is done to the stack.

    Args:
        name: of it, in a few words.
        seconds: that the phase takes at least, from its beginning to the next one's.
        do: does it; returns when it is done.
        excused: whether a sample under way meanwhile may fail.
        judges: replicas that the gateway must have asked once it was done; 0 where that tells nothing.
    """

    name: str
    seconds: float
    do: Callable[[ComposeStack], None]
    excused: bool = False
    judges: int = 0


class Phase(NamedTuple):
    """A disturbance that was, and when.

    Args:
        name: of the disturbance.
        begun: on the machine's monotonic clock.
        done: when the disturbance itself was over.
        ended: when the next phase began.
        excused: whether a sample under way meanwhile may fail.
    """

    name: str
    begun: float
    done: float
    ended: float
    excused: bool

    def excuses(self, begun: float, ended: float) -> bool:
        """Whether a sample that was under way in this time may have failed for this."""
        return self.excused and begun < self.done + EXCUSED_SECONDS and ended > self.begun


def quiet(_: ComposeStack) -> None:
    """Nothing is done."""


def kill_a_judge(stack: ComposeStack) -> None:
    """The last replica of the judge is killed, and stays away."""
    stack.containers("judge")[-1].kill()


def restart(service: str) -> Callable[[ComposeStack], None]:
    """All containers of a service are restarted."""

    def do(stack: ComposeStack) -> None:
        stack.run("restart", service)

    return do


def scale_judge(replicas: int) -> Callable[[ComposeStack], None]:
    """The judge has so many replicas, and all of them are well."""

    def do(stack: ComposeStack) -> None:
        stack.run("up", "--detach", "--wait", "--no-recreate", "--no-deps", "--scale", f"judge={replicas}", "judge")

    return do


def plan(seconds: float, replicas: int) -> list[Disturbance]:
    """All that is done, over at least so many seconds.

    Args:
        seconds: of the whole.
        replicas: of the judge, to which it is scaled up.
    """
    return [
        Disturbance("nothing", 0.1 * seconds, quiet),
        Disturbance("kill one judge", 0.15 * seconds, kill_a_judge),
        Disturbance("restart rules", 0.15 * seconds, restart("rules")),
        Disturbance("restart cache", 0.15 * seconds, restart("cache")),
        Disturbance(f"judge up to {replicas}", 0.15 * seconds, scale_judge(replicas), judges=replicas),
        Disturbance("judge down to 1", 0.15 * seconds, scale_judge(1), judges=1),
        Disturbance("restart gateway", 0.15 * seconds, restart("gateway"), excused=True),
    ]


def disturb(
    stack: ComposeStack, disturbances: Sequence[Disturbance], judges: Callable[[float], int]
) -> Iterator[Phase]:
    """Does one thing after the other; each phase when it has ended.

    Args:
        stack: under load.
        disturbances: in order.
        judges: how many replicas of the judge the gateway has asked since a time on the monotonic clock.
    """
    for one in disturbances:
        begun = time.monotonic()
        one.do(stack)
        done = time.monotonic()
        time.sleep(max(AFTER_SECONDS, begun + one.seconds - done))
        while judges(done) < one.judges and time.monotonic() < done + SPREAD_SECONDS:
            time.sleep(1)
        yield Phase(one.name, begun, done, time.monotonic(), one.excused)
