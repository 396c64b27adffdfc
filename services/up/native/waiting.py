"""Waits until every service is well, and says how far it is."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from services.stack.console import first_error, say, tail
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.native import ownership
from services.up.native.health import probe
from services.up.native.supervision import State, Supervision
from services.up.services import LOADING, kind_of, remedy

POLL_SECONDS = 0.2
SAY_SECONDS = 30.0
ENDED = ("BACKOFF", "EXITED", "FATAL")


class NeverWell(StackError):
    """A service does not come up.

    Args:
        service: its name.
        why: what is wrong.
        well: names of the services that were, since they were started.
    """

    def __init__(self, service: str, why: str, well: Collection[str]) -> None:
        super().__init__(f"{service}: {why}", f"{remedy(service, why)}; then make up again")
        self.service, self.well = service, well


@dataclass
class Watch:
    """What is seen of the services while they start.

    Args:
        run: directory of the stack.
        settings: of the stack; they say how long a service may take.
        logged: bytes of each log that were there before, by name; an error is looked for behind them.
    """

    run: RunDir
    settings: Settings
    logged: Mapping[str, int] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)
    _first: dict[str, int] = field(default_factory=dict)

    def wait(self) -> None:
        """Wait until every service is well; names each as it becomes so.

        Raises:
            NeverWell: one ended, or time ran out, its last log lines are printed first; or somebody else has its port.
        """
        supervision, running = Supervision(self.run), self.run.recall()
        waiting, said = list(running.services if running else ()), 0.0
        while running and waiting:
            states = {state.name: state for state in supervision.states()}
            ended = {state.name for state in states.values() if self._ended(state)}
            for name in list(waiting):
                if taken := ownership.stranger(name, self.run, running):
                    raise NeverWell(name, taken, running.well)
                problem = probe(name, self.run, running) or states.get(name, State(name, "UNKNOWN", 0, 0)).problem
                if why := self._hopeless(name, name in ended, problem):
                    log = self.run.log(name)
                    say(f"--- last lines of {log}\n{tail(log)}\n---")
                    cause = first_error(log, self.logged.get(log.name, 0)) or problem
                    raise NeverWell(name, f"{why}: {cause}", running.well)
                if not problem:
                    say(f"    {name} is well after {self._passed:.1f} s")
                    waiting.remove(name)
                    if name not in running.well:
                        running.well.append(name)
                        self.run.remember(running)
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
