"""Waits until every service is well, and says how far it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from services.stack.console import say, tail
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.native.health import probe
from services.up.native.supervision import State, Supervision
from services.up.services import LOADING, REMEDIES, kind_of

POLL_SECONDS = 0.2
SAY_SECONDS = 30.0
ENDED = ("BACKOFF", "EXITED", "FATAL")


class NeverWell(StackError):
    """A service does not come up.

    Args:
        service: its name.
        why: what is wrong.
    """

    def __init__(self, service: str, why: str) -> None:
        super().__init__(f"{service}: {why}", f"{REMEDIES[kind_of(service)]}; then make up again")
        self.service = service


@dataclass
class Watch:
    """What is seen of the services while they start.

    Args:
        run: directory of the stack.
        settings: of the stack; they say how long a service may take.
    """

    run: RunDir
    settings: Settings
    _start: float = field(default_factory=time.monotonic)
    _first: dict[str, int] = field(default_factory=dict)

    def wait(self) -> None:
        """Wait until every service is well; names each as it becomes so.

        Raises:
            NeverWell: one ended, or time ran out; its last log lines are printed first.
        """
        supervision, running = Supervision(self.run), self.run.recall()
        waiting, said = list(running.services if running else ()), 0.0
        while running and waiting:
            ended = {state.name for state in supervision.states() if self._ended(state)}
            for name in list(waiting):
                problem = probe(name, self.run, running)
                if why := self._hopeless(name, name in ended, problem):
                    say(f"--- last lines of {self.run.log(name)}\n{tail(self.run.log(name))}\n---")
                    raise NeverWell(name, f"{why}: {problem}")
                if not problem:
                    say(f"    {name} is well after {self._passed:.1f} s")
                    waiting.remove(name)
            if waiting and self._passed - said > SAY_SECONDS:
                said = self._passed
                say(f"    {', '.join(waiting)}: still starting after {said:.0f} s (make logs s={waiting[0]})")
            time.sleep(POLL_SECONDS if waiting else 0)

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._start

    def _hopeless(self, name: str, ended: bool, problem: str) -> str:
        limit = "MODEL_UP_TIMEOUT" if kind_of(name) in LOADING else "UP_TIMEOUT"
        if ended:
            return "it ends while it is starting"
        late = problem and self._passed > self.settings.number(limit)
        return f"not well after {self.settings[limit]} s ({limit})" if late else ""

    def _ended(self, state: State) -> bool:
        """Whether a service ended since it was first seen; supervisord may have started it again by now."""
        seen = self._first[state.name] = self._first.get(state.name) or state.pid
        return state.state in ENDED or state.pid != seen
