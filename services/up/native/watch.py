"""Watches the services while they run: `python -m services.up.native.watch RUN_DIR`.

supervisord starts it beside them, and itself restarts what has ended. Every few seconds this does the rest: it starts
what supervisord has given up, kills a service that hangs, tells the gateway which model servers of other nodes are
alive, renews the file of endpoints that trainers read, and rotates the logs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from services.stack import processes, template
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import RunDir, Running
from services.up.apptainer import endpoints
from services.up.native.health import hung
from services.up.native.replicas import DISCOVERY, Replicas
from services.up.native.supervisor import State, Supervisor

INTERVAL_SECONDS = 5.0
LOG_BYTES = 10_000_000
"""Of a log file, from which on it is moved aside; one earlier file is kept."""


def log(text: str) -> None:
    """Print a line to the log; it is lost where nobody reads it any more."""
    with suppress(OSError):
        print(text, flush=True)


@dataclass
class HungServices:
    """Ends services that run and do not answer.

    One that has not been healthy since it was started is left alone: it may be loading a model.

    Args:
        seconds: without an answer after which a service is ended; 0 for never.
    """

    run: RunDir
    seconds: float
    _healthy: dict[tuple[str, int], float] = field(default_factory=dict)
    """When a process of a service was last healthy."""

    def check(self) -> None:
        """Ask every service that runs, and end those that hang."""
        running = self.run.load()
        if running is None or not self.seconds:
            return
        states = [state for state in Supervisor(self.run).states() if state.state == "RUNNING"]
        self._healthy = {process: when for process, when in self._healthy.items() if process in map(_process, states)}
        for state in states:
            if state.name in running.services:
                self._ask(state, running)

    def _ask(self, state: State, running: Running) -> None:
        now, process = time.monotonic(), _process(state)
        problem = hung(state.name, self.run, running)
        if not problem:
            if process not in self._healthy:
                log(f"{state.name} (pid {state.pid}) is healthy")
            self._healthy[process] = now
        elif now - self._healthy.get(process, now) >= self.seconds:
            log(f"{state.name} (pid {state.pid}) has not been healthy for {self.seconds:g} s and is killed: {problem}")
            processes.end_group(state.pid, running.session)


def _process(state: State) -> tuple[str, int]:
    return state.name, state.pid


class Upstream:
    """The servers of a service with replicas on other nodes, as the gateway has them.

    Args:
        file: of the gateway, which lists them.
        text: of this file, with the variable in place of a server.
        variable: that stands for a server.
        own: servers of this stack itself.
        nobody: in place of a server where there is none, because nginx requires one.
        folder: in which each replica keeps a file.
        url: the variable under which that file names it.
    """

    def __init__(
        self, run: RunDir, file: str, text: str, variable: str, own: list[str], nobody: str, folder: str, url: str
    ) -> None:
        self._file, self._text, self._variable, self._own, self._nobody = run.path / file, text, variable, own, nobody
        # After a restart of this process the gateway keeps the servers it has for the time of a heartbeat.
        listed = re.split(r"[\s;]+", self._file.read_text(encoding="utf-8"))
        self._replicas = Replicas(Path(folder), url, log, listed=frozenset(listed))

    def update(self) -> bool:
        """Write the gateway's file; returns whether it has changed."""
        alive = self._replicas.alive()
        wanted = template.fill_text(self._text, {self._variable: [*self._own, *alive] or [self._nobody]})
        if self._file.read_text(encoding="utf-8") == wanted:
            return False
        template.write({f"{self._file.name}.new": wanted}, self._file.parent)
        os.replace(f"{self._file}.new", self._file)
        log(f"{self._replicas.folder}: {', '.join(alive) or 'nobody'}")
        return True


class Discovery:
    """Keeps the gateway's servers as the folders of replicas are."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        described = json.loads((run.path / DISCOVERY).read_text(encoding="utf-8"))
        self._upstreams = [Upstream(run, **one) for one in described]
        self._is_due = False
        """Whether the gateway has yet to load what is written."""

    def check(self) -> None:
        """Have the gateway load what has changed since; what fails is tried again at the next check."""
        for upstream in self._upstreams:
            self._is_due |= upstream.update()
        if self._is_due:
            Supervisor(self._run).reload_gateway()
            self._is_due = False


def beat(run: RunDir) -> None:
    """Renew the file of endpoints, if this stack has published one."""
    if problem := endpoints.beat(run):
        log(f"the endpoints are withheld: {problem}")


def rotate_logs(run: RunDir) -> None:
    """Copy logs that have grown large aside, and empty them: supervisord goes on writing to the same file."""
    for file in run.logs.glob("*.log"):
        if file.stat().st_size > LOG_BYTES:
            earlier = file.with_name(f"{file.name}.1")
            try:
                shutil.copyfile(file, earlier)
            except OSError:
                earlier.unlink()  # where the disk is full, the lines are lost
            os.truncate(file, 0)


def _repeat(task: Callable[[], None]) -> None:
    """Run a task again and again; what is unexpected ends this process, which supervisord starts again."""
    while True:
        try:
            task()
        except (StackError, OSError) as error:
            log(str(explain_os_error(error)))
        except Exception:  # noqa: BLE001 - of whatever kind
            traceback.print_exc(file=sys.stdout)
            os._exit(1)
        time.sleep(INTERVAL_SECONDS)


def main(folder: str) -> None:
    """Watch until supervisord ends this process."""
    run = RunDir(folder)
    tasks = (
        Supervisor(run).restart_failed,
        HungServices(run, float(os.environ["UNHEALTHY_TIMEOUT"])).check,
        Discovery(run).check,
        partial(beat, run),
        partial(rotate_logs, run),
    )
    # A thread each: a service that does not answer must not delay a heartbeat.
    for task in tasks:
        threading.Thread(target=_repeat, args=(task,)).start()


if __name__ == "__main__":
    main(sys.argv[1])
