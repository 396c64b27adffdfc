"""What is done to the stack while it is soaked; each fault is over when the stack has recovered from it.

Where there are two of something it is always the same one that suffers, the youngest or the second.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import psutil

from tests.soak.stack import SoakStack
from tests.support.load.phases import Disturbance
from tests.support.waiting import eventually

Find = Callable[[], psutil.Process]
QUIET = "nothing"
"""The name of the phase without a fault."""


def plan(stack: SoakStack, seconds: float, stopped: float) -> list[Disturbance]:
    """All faults, in turn. A process that hangs may cost samples that wait for it.

    Args:
        stack: that suffers them.
        seconds: of the whole.
        stopped: seconds after which a stopped process is resumed, unless something has replaced it before.
    """

    kill, halt, restart = partial(_kill, stack), partial(_halt, stack, stopped), partial(_restart, stack)
    done: dict[str, Callable[[], None]] = {
        QUIET: lambda: None,
        "kill a verifier": partial(kill, stack.verifier),
        "stop a verifier": partial(halt, stack.verifier),
        "kill the zygote": partial(kill, stack.zygote),
        "stop the zygote": partial(halt, stack.zygote),
        "kill the verifiers": partial(kill, stack.verifiers),
        "stop the verifiers": partial(halt, stack.verifiers),
        "kill a server": partial(kill, stack.server),
        "kill a worker": partial(restart, "worker-2"),
        "restart cache": partial(restart, "cache"),
        "restart queue": partial(restart, "queue"),
        "reload gateway": stack.supervisor.reload_gateway,
    }
    return [Disturbance(name, seconds / len(done), do, excused=name.startswith("stop")) for name, do in done.items()]


def _kill(stack: SoakStack, find: Find) -> None:
    victim = find()
    victim.kill()
    eventually(lambda: not victim.is_running())
    stack.recover()


def _halt(stack: SoakStack, seconds: float, find: Find) -> None:
    """Stops a process and resumes it after a time, unless something has ended it."""
    victim = find()
    victim.suspend()
    psutil.wait_procs([victim], seconds)
    with suppress(psutil.NoSuchProcess):
        victim.resume()
    stack.recover()


def _restart(stack: SoakStack, service: str) -> None:
    """A service's main process is killed, and supervisord starts it again."""
    before = stack.pid(service)
    psutil.Process(before).kill()
    eventually(lambda: stack.pid(service) not in (0, before))
    stack.recover()
