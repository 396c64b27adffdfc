"""What is done to the stack in containers, one thing after the other."""

from __future__ import annotations

from functools import partial

from tests.support.compose import ComposeStack
from tests.support.load.phases import Disturbance


def quiet() -> None:
    """Nothing is done."""


def kill_a_judge(stack: ComposeStack) -> None:
    """The last replica of the judge is killed, and stays away."""
    stack.containers("judge")[-1].kill()


def restart(stack: ComposeStack, service: str) -> None:
    """All containers of a service are restarted, and well again."""
    stack.run("restart", service)
    stack.run("up", "--detach", "--wait", "--no-recreate", "--no-deps", service)


def scale_judge(stack: ComposeStack, replicas: int) -> None:
    """The judge has so many replicas, and all of them are well."""
    stack.run("up", "--detach", "--wait", "--no-recreate", "--no-deps", "--scale", f"judge={replicas}", "judge")


def plan(stack: ComposeStack, seconds: float, replicas: int) -> list[Disturbance]:
    """All that is done, over at least so many seconds.

    Args:
        stack: that is disturbed.
        seconds: of the whole.
        replicas: of the judge, to which it is scaled up.
    """
    return [
        Disturbance("nothing", 0.1 * seconds, quiet),
        Disturbance("kill one judge", 0.15 * seconds, partial(kill_a_judge, stack)),
        Disturbance("restart rules", 0.15 * seconds, partial(restart, stack, "rules")),
        Disturbance("restart cache", 0.15 * seconds, partial(restart, stack, "cache")),
        Disturbance(scaled(replicas), 0.15 * seconds, partial(scale_judge, stack, replicas)),
        Disturbance(scaled(1), 0.15 * seconds, partial(scale_judge, stack, 1)),
        Disturbance("restart gateway", 0.15 * seconds, partial(restart, stack, "gateway"), excused=True),
    ]


def judges(replicas: int) -> dict[str, int]:
    """Replicas of the judge that the gateway must have asked once something was done, by its name, where that tells.

    Args:
        replicas: of the judge, to which it is scaled up.
    """
    return {scaled(number): number for number in (replicas, 1)}


def scaled(replicas: int) -> str:
    """The name of the disturbance that gives the judge so many replicas."""
    return f"judge has {replicas}"
