"""What is done to the stack while it is soaked; each fault is over when the stack has recovered from it.

Where there are two of something it is always the same one that suffers, the youngest or the second.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.soak.stack import SoakStack
from tests.support.load.phases import Disturbance
from tests.support.waiting import eventually

Find = Callable[[], psutil.Process]


def plan(stack: SoakStack, seconds: float, stopped: float) -> list[Disturbance]:
    """All faults, by turns.

    Args:
        stack: that suffers them.
        seconds: of the whole.
        stopped: seconds after which what was stopped goes on, where nothing has replaced it before.
    """

    def killed(find: Find) -> Callable[[], None]:
        return lambda: _kill(stack, find)

    def halted(find: Find) -> Callable[[], None]:
        return lambda: _halt(stack, find, stopped)

    def restarted(service: str) -> Callable[[], None]:
        return lambda: _restart(stack, service)

    def child() -> psutil.Process:
        return stack.zygote().children()[-1]

    done: dict[str, Callable[[], None]] = {
        "nothing": lambda: None,
        "kill a verifier": killed(child),
        "stop a verifier": halted(child),
        "kill the zygote": killed(stack.zygote),
        "stop the zygote": halted(stack.zygote),
        "kill the verifiers": killed(stack.verifiers),
        "stop the verifiers": halted(stack.verifiers),
        "kill a server": killed(lambda: stack.servers()[-1]),
        "kill a worker": restarted("worker-2"),
        "restart cache": restarted("cache"),
        "restart queue": restarted("queue"),
        "reload gateway": stack.supervision.reload_gateway,
    }
    return [Disturbance(name, seconds / len(done), do, excused=name.startswith("stop")) for name, do in done.items()]


def _kill(stack: SoakStack, find: Find) -> None:
    victim = find()
    victim.kill()
    eventually(lambda: not victim.is_running())
    stack.recover()


def _halt(stack: SoakStack, find: Find, seconds: float) -> None:
    """Stops a process; it goes on after a time, unless something has ended it."""
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
