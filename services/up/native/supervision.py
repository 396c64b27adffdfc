"""The running stack: supervisord and the services it keeps up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from xmlrpc.client import Error, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from services.stack import processes
from services.stack.errors import StackError
from services.stack.processes import Process
from services.stack.rundir import ROOT, RunDir, Running

START_SECONDS = 15.0
STOP_SECONDS = 180.0
"""Longer than all services together are given to stop."""
POLL_SECONDS = 0.1
UP = ("RUNNING", "STARTING", "BACKOFF")
PROGRAM = "supervisor.supervisord"


@dataclass(frozen=True)
class State:
    """What supervisord says of a service; `pid` and `uptime` (seconds) are 0 where it does not run."""

    name: str
    state: str
    pid: int
    uptime: int


class Supervision:
    """Starts, asks and stops the supervisord of one run directory."""

    def __init__(self, run: RunDir) -> None:
        self._run = run

    def states(self) -> list[State]:
        """The state of each service; empty where no supervisord answers."""
        try:
            infos: Any = self._rpc().getAllProcessInfo()
        except (OSError, HTTPException, Error):
            return []
        return [
            State(info["name"], info["statename"], info["pid"], info["now"] - info["start"] if info["pid"] else 0)
            for info in infos
        ]

    def start(self, environment: Mapping[str, str], describe: Callable[[int], Running]) -> None:
        """Start supervisord, and with it the services.

        Args:
            environment: all that supervisord is given; it hands each service its own part.
            describe: what is being started, given its session; kept before anything else can go wrong.

        Raises:
            StackError: supervisord ended, or did not answer in time.
        """
        configuration = str(self._run.path / "supervisord.conf")
        said = self._run.log("supervisord-start")
        with said.open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, "--configuration", configuration],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._run.remember(describe(child.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self.states():
            if child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise StackError(f"supervisord did not start: {said.read_text(errors='replace').strip()}")
            time.sleep(POLL_SECONDS)

    def start_stopped(self) -> None:
        """Start the services that are not up."""
        for state in self.states():
            if state.state not in UP:
                self._call("startProcess", state.name, False)

    def restart(self, service: str) -> None:
        """Stop one service and start it again; waits for the stop only."""
        if any(state.name == service and state.state in UP for state in self.states()):
            self._call("stopProcess", service, True)
        self._call("startProcess", service, False)

    def stop(self) -> int:
        """Stop every service and supervisord itself, and whatever they left behind.

        Returns:
            How many processes had to be ended one by one.
        """
        if self.states():
            leader = self._call("getPID")
            self._call("shutdown")
            deadline = time.monotonic() + STOP_SECONDS
            while processes.read(leader) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        left = processes.kill(self.members)
        self._run.forget()
        return left

    def members(self) -> list[Process]:
        """The processes of the stack: those of supervisord's session that work in its directories.

        They outlive a supervisord that was killed. A process id can come back: where another program leads the session
        of that number, it is not ours.
        """
        running = self._run.recall()
        if running is None:
            return []
        if processes.read(running.session) and PROGRAM not in processes.command(running.session):
            return []
        return [
            process
            for process in processes.processes()
            if process.session == running.session
            and processes.directory(process.pid) in (ROOT, self._run.path, self._run.queue)
        ]

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return getattr(self._rpc(), method)(*arguments)
        except (OSError, HTTPException, Error) as error:
            raise StackError(
                f"supervisord refused {method}: {error}", f"see {self._run.logs}, then make down"
            ) from error

    def _rpc(self) -> Any:
        transport = SupervisorTransport(serverurl=f"unix://{self._run.supervisor_socket}")
        return ServerProxy("http://localhost", transport=transport).supervisor
