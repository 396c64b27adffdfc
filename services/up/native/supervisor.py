"""Start supervisord, query it over its socket, and stop it with all processes of the stack.

Stopping needs no third-party packages, so it works even if `.venv` is broken. Before this module signals a
process, it checks the process's session, command and start time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any
from xmlrpc.client import Error, ServerProxy, Transport

from services.stack import processes
from services.stack.console import tail
from services.stack.errors import StackError
from services.stack.probes import UnixConnection
from services.stack.processes import Process, defer_signals
from services.stack.rundir import MOUNT_PROGRAMS, ROOT, SUPERVISOR, RunDir, Running
from services.up.services import LOADING, kind_of

CONFIGURATION = "supervisord.conf"
WATCH = "watch"
"""Name of the program that watches the services; it is not a service."""
START_SECONDS = 15.0
RELOAD_SECONDS = 30.0
MARGIN_SECONDS = 30.0
"""Seconds to wait for a stop, in addition to the grace periods of the programs."""
POLL_SECONDS = 0.1
MASTER = "nginx: master process"
UP = ("RUNNING", "STARTING", "BACKOFF")
IMAGES = ("Apptainer runtime parent", *MOUNT_PROGRAMS)
"""Programs that run or mount an image. `Supervisor.members` recognizes their processes by the command line, because
their working directory is not one of the stack's directories."""


@dataclass(frozen=True)
class State:
    """State of a service in supervisord. `pid` and `uptime` (seconds) are 0 if the service does not run."""

    name: str
    state: str
    pid: int
    uptime: int

    @property
    def problem(self) -> str:
        """Message about a state other than RUNNING; empty if the state is RUNNING.

        In another state, the service is unhealthy even if a probe succeeds.
        """
        return "" if self.state == "RUNNING" else f"supervisord reports {self.state.lower()}"


class Supervisor:
    """The supervisord of one run directory."""

    def __init__(self, run: RunDir) -> None:
        self._run, self._configuration = run, str(run.path / CONFIGURATION)
        self._child: subprocess.Popen[bytes] | None = None

    def states(self) -> list[State]:
        """Return the state of each service; empty if supervisord does not answer."""
        try:
            infos = self._ask("getAllProcessInfo")
        except (OSError, HTTPException, Error):
            return []
        return [
            State(info["name"], info["statename"], info["pid"], info["now"] - info["start"] if info["pid"] else 0)
            for info in infos
            if info["name"] != WATCH
        ]

    def start(self, environment: Mapping[str, str], describe: Callable[[int], Running]) -> None:
        """Start supervisord, which starts the services.

        Args:
            environment: environment of supervisord.
            describe: returns the state of the stack, given the session id of supervisord. The state is saved
                immediately, so that `make down` works even if the start is interrupted.

        Raises:
            StackError: supervisord exited, or did not answer in time.
        """
        command = [sys.executable, "-m", SUPERVISOR, "--configuration", self._configuration]
        with defer_signals():
            # Discard the output. If the disk is full, supervisord prints its messages instead of logging them, and
            # exits if printing fails, too.
            child = self._child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._run.save(describe(child.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self.states():
            if child.poll() is not None or time.monotonic() > deadline:
                self.stop()
                last = tail(self._run.log("supervisord"), 1) or "it logged nothing"
                raise StackError(f"supervisord did not start: {last}", f"run it to see its output: {' '.join(command)}")
            time.sleep(POLL_SECONDS)

    def start_stopped(self) -> list[str]:
        """Start the services that are not up, and return their names."""
        stopped = [state.name for state in self.states() if state.state not in UP]
        for name in stopped:
            self._call("startProcess", name, False)
        return stopped

    def halt(self, service: str) -> None:
        """Stop a service until the next `make up`.

        Raises:
            StackError: the service does not stop.
        """
        deadline = time.monotonic() + stop_seconds(self._run) + MARGIN_SECONDS
        while any(state.name == service and state.state != "STOPPED" for state in self.states()):
            if time.monotonic() > deadline:
                raise StackError(f"{service} does not stop", "make down")
            self.restart_failed()  # supervisord cannot stop a FATAL program, so start it first
            self._kill_loading([service], running.healthy if (running := self._run.load()) else ())
            self._call("stopProcessGroup", service)
            time.sleep(POLL_SECONDS)

    def reread(self) -> tuple[list[str], list[str], list[str]]:
        """Make supervisord read its configuration, and return the added, changed and removed programs."""
        added, changed, removed = self._call("reloadConfig")[0]
        return added, changed, removed

    def add(self, name: str) -> None:
        """Start a program that was added to the configuration."""
        self._call("addProcessGroup", name)

    def remove(self, name: str, healthy: Collection[str]) -> None:
        """Stop a program gracefully, and kill the remaining processes of its process group.

        Args:
            name: name of the program.
            healthy: names of the services that have been healthy since they were started. Model servers that have
                not been healthy are killed.
        """
        self._kill_loading([name], healthy)
        self._call("stopProcessGroup", name)
        self._call("removeProcessGroup", name)
        if running := self._run.load():
            processes.end_group(self._run.process_group(name), running.session)
        self._run.group_file(name).unlink(missing_ok=True)

    def restart_failed(self) -> None:
        """Start the services that are FATAL in supervisord. Services that were stopped on purpose stay stopped."""
        for state in self.states():
            if state.state == "FATAL":
                self._call("startProcess", state.name, False)

    def reopen_logs(self) -> None:
        """Make supervisord close its log files and those of the services, and open files of the same names."""
        running = self._run.load()
        leader = processes.find(running.session) if running else None
        if leader and self._configuration in leader.command:
            leader.signal(signal.SIGUSR2)

    def reload_gateway(self) -> None:
        """Make nginx reload its files, and wait until no worker with the old configuration accepts requests.

        Raises:
            StackError: nginx does not reload its files in time.
        """
        pid = next((state.pid for state in self.states() if state.name == "gateway" and state.state in UP), 0)
        # With images, supervisord's child runs the image, and nginx's master process is a descendant.
        ours = processes.descendants(pid) if pid else []
        master = next((process for process in ours if MASTER in " ".join(process.command)), None)
        if master is None:
            return  # nginx is not running and will read the files when it starts
        before = [process for process in ours if process.parent == master.pid]
        master.signal(signal.SIGHUP)
        deadline = time.monotonic() + RELOAD_SECONDS
        while any(worker.is_alive and "shutting down" not in " ".join(worker.command) for worker in before):
            if time.monotonic() > deadline:
                raise StackError("the gateway keeps its earlier configuration", "make logs s=gateway")
            time.sleep(POLL_SECONDS)

    def stop(self, gently: bool = True) -> None:
        """Stop every service and supervisord itself, and kill remaining processes of the stack.

        Args:
            gently: whether services may finish requests in flight within their grace periods.
        """
        states = self.states()
        leader = processes.find(running.session) if (running := self._run.load()) else None
        if gently and states and running and leader:
            self._kill_loading([state.name for state in states], running.healthy)
            deadline = time.monotonic() + stop_seconds(self._run) + MARGIN_SECONDS
            self._call("shutdown")
            while leader.is_alive and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        processes.end(self.members)
        if self._child:
            self._child.wait()
        self._run.clear()

    def members(self) -> list[Process]:
        """Return the processes of the stack, including those that survive a killed supervisord.

        These are the processes in supervisord's session that have a directory of the stack as working directory, or
        that run or mount an image. Session ids are reused, so if another program leads the session, none of its
        processes belongs to the stack.
        """
        running = self._run.load()
        if running is None:
            return []
        leader = processes.find(running.session)
        if leader and self._configuration not in leader.command:
            return []
        directories = (ROOT, self._run.path, self._run.queue)
        return [
            process
            for process in processes.members(running.session)
            if process.directory in directories or _is_image(process)
        ]

    def _kill_loading(self, names: list[str], healthy: Collection[str]) -> None:
        """Kill model servers that were never healthy. vLLM ignores SIGTERM while it loads, and has no requests yet."""
        loading = {name for name in names if kind_of(name) in LOADING} - {*healthy}
        for state in self.states() if loading else ():
            if state.name in loading and (process := processes.find(state.pid)):
                self._call("stopProcessGroup", state.name, False)
                processes.end_group(process.pid, process.session)

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return self._ask(method, *arguments)
        except (OSError, HTTPException, Error) as error:
            raise StackError(
                f"supervisord refused {method}: {error}", f"see {self._run.logs}, then make down"
            ) from error

    def _ask(self, method: str, *arguments: object) -> Any:
        with ServerProxy("http://localhost", transport=_UnixTransport(self._run)) as server:
            return getattr(server.supervisor, method)(*arguments)


def sections(run: RunDir) -> dict[str, dict[str, str]]:
    """Return the sections of the current supervisord.conf; empty if there is none."""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string((run.path / CONFIGURATION).read_text(encoding="utf-8"))
    except (OSError, ConfigError):
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}


def stop_seconds(run: RunDir) -> int:
    """Return the maximum number of seconds for stopping all programs one after another."""
    return sum(int(section.get("stopwaitsecs", 0)) for section in sections(run).values())


class _UnixTransport(Transport):
    """XML-RPC transport over supervisord's socket. It has no timeout, because a call may last until a program stops."""

    def __init__(self, run: RunDir) -> None:
        super().__init__()
        self._socket = run.supervisor_socket

    def make_connection(self, host: Any) -> HTTPConnection:
        connection = UnixConnection(self._socket, None)
        self._connection = host, connection  # closed by `close`
        return connection


def _is_image(process: Process) -> bool:
    return any(name in " ".join(process.command) for name in IMAGES)
