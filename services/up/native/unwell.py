"""Ends a service that hangs: `python -m services.up.native.unwell RUN_DIR SECONDS`, which supervisord starts.

supervisord starts again what has ended, and cannot tell what lives and does not answer. This listens to its clock, and
asks each service whether it lives; one that did and has not for SECONDS is ended. One that never did is left in peace,
for it may be loading a model.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from services.stack import processes
from services.stack.rundir import RunDir, Running
from services.up.native.events import listen, log
from services.up.native.health import hangs
from services.up.native.supervision import State, Supervision


@dataclass
class Watch:
    """What is known of the services.

    Args:
        run: directory of the stack.
        seconds: that a service may be unwell.
    """

    run: RunDir
    seconds: float
    _well: dict[tuple[str, int], float] = field(default_factory=dict)
    """When a process of a service was well last."""

    def look(self) -> None:
        """Ask every service that runs, and end those that hang."""
        running = self.run.recall()
        if running is None:
            return
        states = [state for state in Supervision(self.run).states() if state.state == "RUNNING"]
        self._well = {process: when for process, when in self._well.items() if process in map(_process, states)}
        for state in states:
            if state.name in running.services:
                self._ask(state, running)

    def _ask(self, state: State, running: Running) -> None:
        now, process = time.monotonic(), _process(state)
        problem = hangs(state.name, self.run, running)
        if not problem:
            if process not in self._well:
                log(f"{state.name} (pid {state.pid}) is well")
            self._well[process] = now
        elif now - self._well.get(process, now) >= self.seconds:
            log(f"{state.name} (pid {state.pid}) has not been well for {self.seconds:g} s and is ended: {problem}")
            processes.end_group(state.pid, running.session)


def _process(state: State) -> tuple[str, int]:
    return state.name, state.pid


def main(folder: str, seconds: str) -> None:
    """Listen until supervisord ends."""
    watch = Watch(RunDir(folder), float(seconds))
    listen(lambda _: watch.look() if watch.seconds else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
