"""The running stack: supervisord and the services it keeps up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from xmlrpc.client import Error, ServerProxy

import psutil
from supervisor.xmlrpc import SupervisorTransport

from services.stack import processes
from services.stack.errors import StackError
from services.stack.interruption import undisturbed
from services.stack.rundir import ROOT, SUPERVISOR, RunDir, Running
from services.up.native import session
from services.up.native.session import POLL_SECONDS, STOP_SECONDS

START_SECONDS = 15.0
RELOAD_SECONDS = 30.0
MASTER = "nginx: master process"
UP = ("RUNNING", "STARTING", "BACKOFF")
LISTENERS = ("restarter", "unwell", "following", "heartbeat")
"""No services, but what has supervisord start them again, the gateway follow others, or what says that it lives."""


@dataclass(frozen=True)
class State:
    """What supervisord says of a service; `pid` and `uptime` (seconds) are 0 where it does not run."""

    name: str
    state: str
    pid: int
    uptime: int

    @property
    def problem(self) -> str:
        """Why it does not count as well, whoever answers in its place; empty where it runs."""
        return "" if self.state == "RUNNING" else f"supervisord has it as {self.state.lower()}"


class Supervision:
    """Starts, asks and stops the supervisord of one run directory."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self._child: subprocess.Popen[bytes] | None = None

    def states(self) -> list[State]:
        """The state of each service; empty where no supervisord answers."""
        try:
            infos = self._ask("getAllProcessInfo")
        except (OSError, HTTPException, Error):
            return []
        return [
            State(info["name"], info["statename"], info["pid"], info["now"] - info["start"] if info["pid"] else 0)
            for info in infos
            if info["name"] not in LISTENERS
        ]

    def start(self, environment: Mapping[str, str], describe: Callable[[int], Running]) -> None:
        """Start supervisord, and with it the services.

        Args:
            environment: all that supervisord is given.
            describe: what is being started, given its session; kept before anything else can go wrong.

        Raises:
            StackError: supervisord ended, or did not answer in time.
        """
        configuration = str(self._run.path / "supervisord.conf")
        said = self._run.log("supervisord-start")
        with undisturbed(), said.open("wb") as log:
            child = self._child = subprocess.Popen(
                [sys.executable, "-m", SUPERVISOR, "--configuration", configuration],
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

    def start_stopped(self) -> list[str]:
        """Start the services that are not up; returns their names."""
        stopped = [state.name for state in self.states() if state.state not in UP]
        for name in stopped:
            self._call("startProcess", name, False)
        return stopped

    def halt(self, service: str) -> None:
        """Stop a service until it is started by hand, or by the next `make up`.

        One that supervisord has given up cannot be stopped: the restarter starts it first.

        Raises:
            StackError: it does not stop.
        """
        deadline = time.monotonic() + STOP_SECONDS
        while any(state.name == service and state.state != "STOPPED" for state in self.states()):
            if time.monotonic() > deadline:
                raise StackError(f"{service} does not stop", "make down")
            self._call("stopProcessGroup", service)
            time.sleep(POLL_SECONDS)

    def reread(self) -> tuple[list[str], list[str], list[str]]:
        """Have supervisord read its configuration; returns the services that it adds, changes and no longer names."""
        added, changed, removed = self._call("reloadConfig")[0]
        return added, changed, removed

    def add(self, service: str) -> None:
        """Start a service that the configuration names anew."""
        self._call("addProcessGroup", service)

    def remove(self, service: str) -> None:
        """Stop a service, and what it leaves behind."""
        self._call("stopProcessGroup", service)
        self._call("removeProcessGroup", service)
        if running := self._run.recall():
            processes.end_group(self._run.process_group(service), running.session)
        self._run.group_file(service).unlink(missing_ok=True)

    def reload_gateway(self) -> None:
        """Have nginx take up its files; returns once no process with the earlier ones takes requests.

        Raises:
            StackError: it does not take them up.
        """
        pid = next((state.pid for state in self.states() if state.name == "gateway"), 0)
        leader = processes.alive(pid) if pid else None
        # In an image the process that supervisord knows is the one that runs the image.
        ours = [leader, *leader.children(recursive=True)] if leader else []
        master = next((process for process in ours if MASTER in " ".join(processes.command(process))), None)
        if master is None:
            return  # it reads them when it starts
        before = master.children()
        master.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + RELOAD_SECONDS
        while any(
            "shutting down" not in " ".join(processes.command(worker)) for worker in before if worker.is_running()
        ):
            if time.monotonic() > deadline:
                raise StackError("the gateway keeps its earlier configuration", "make logs s=gateway")
            time.sleep(POLL_SECONDS)

    def stop(self, gently: bool = True) -> None:
        """Stop every service and supervisord itself, and whatever they left behind.

        Args:
            gently: whether services are given the time that they ask for.
        """
        if gently and self.states():
            leader, deadline = self._call("getPID"), time.monotonic() + STOP_SECONDS
            self._call("shutdown")
            # Where nobody waits for it, as in a container without an init, it stays a zombie.
            while processes.alive(leader) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        processes.end(self.members)
        if self._child:
            self._child.wait()
        self._run.forget()

    def members(self) -> list[psutil.Process]:
        """The processes of the stack, also those that outlive a supervisord that was killed."""
        found = (processes.alive(pid) for pid in session.members(self._run))
        return [process for process in found if process]

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return self._ask(method, *arguments)
        except (OSError, HTTPException, Error) as error:
            raise StackError(
                f"supervisord refused {method}: {error}", f"see {self._run.logs}, then make down"
            ) from error

    def _ask(self, method: str, *arguments: object) -> Any:
        transport = SupervisorTransport(serverurl=f"unix://{self._run.supervisor_socket}")
        try:
            return getattr(ServerProxy("http://localhost", transport=transport).supervisor, method)(*arguments)
        finally:
            transport.close()
