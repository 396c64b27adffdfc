"""Run `make status`, `make logs` and `make down` for local processes, including processes in Apptainer images.

The commands need no third-party packages.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir, Running
from services.stack.secrets import Secrets
from services.up.apptainer import endpoints
from services.up.native import health
from services.up.native.supervisor import State, Supervisor
from services.up.services import LOG_LINES, ROW


def status(run: RunDir, as_json: bool = False) -> None:
    """Print a line for each service: state, process id, uptime, health.

    Args:
        run: run directory of the stack.
        as_json: whether to print one JSON object instead, with uptime in seconds and the ports by setting.

    Raises:
        StackError: nothing runs, or a service is not healthy.
    """
    running, supervisor = run.load(), Supervisor(run)
    states = {state.name: state for state in supervisor.states()}
    if not states and supervisor.members():
        raise StackError("services run here, but their supervisord does not answer", "make up, or make down")
    if not states or not running:
        raise StackError("nothing runs here", "make up")
    # An interrupted `make up` may have stopped services, which supervisord then does not report.
    states |= {name: State(name, "STOPPED", 0, 0) for name in running.services if name not in states}
    problems = {name: health.problem(name, run, running) or states[name].problem for name in running.services}
    if as_json:
        services = [_record(states[name], problem) for name, problem in problems.items()]
        say(json.dumps({"deployment": running.backend, "services": services, "ports": dict(running.ports)}, indent=1))
    else:
        _print_rows(states, problems, running)
    if unhealthy := [name for name, problem in problems.items() if problem]:
        raise StackError(f"unhealthy: {', '.join(unhealthy)}", f"make logs s={unhealthy[0]}")


def _print_rows(states: Mapping[str, State], problems: Mapping[str, str], running: Running) -> None:
    say(ROW.format("SERVICE", "STATE", "PID", "UPTIME", "HEALTH"))
    for name, problem in problems.items():
        state = states[name]
        uptime = str(timedelta(seconds=state.uptime))
        say(ROW.format(name, state.state.lower(), state.pid or "-", uptime, problem or "ok"))
    say("ports: " + ", ".join(f"{name}={port}" for name, port in running.ports.items()))


def _record(state: State, problem: str) -> dict[str, Any]:
    record = {"service": state.name, "state": state.state.lower(), "pid": state.pid or None, "uptime": state.uptime}
    return {**record, "health": problem or "ok"}


def logs(run: RunDir, service: str = "", follow: bool = False) -> None:
    """Print the last log lines of one service, or of all services.

    Args:
        run: run directory of the stack.
        service: name of the service; empty for all services.
        follow: whether to print new lines until interrupted.

    Raises:
        StackError: the service is unknown, or nothing has run here.
    """
    running = run.load()
    names = running.services if running else sorted(log.stem for log in run.logs.glob("*.log"))
    if not names:
        raise StackError("nothing has run here", "make up")
    if service and service not in names:
        raise StackError(f"there is no service {service!r}", f"the services are {', '.join(names)}")
    files = [str(run.log(name)) for name in ([service] if service else names)]
    options = ["--follow=name", "--retry"] if follow else []
    subprocess.run(["tail", "--verbose", f"--lines={LOG_LINES}", *options, *files], check=False)


def down(run: RunDir) -> None:
    """Stop the services after they have finished requests in flight, and withdraw the endpoints file for trainers.

    Raises:
        StackError: a process still runs.
    """
    supervisor = Supervisor(run)
    try:
        if not supervisor.states() and not supervisor.members():
            say("nothing runs here")
            return
        with step("stopping the services", "services stopped"):
            supervisor.stop()
            Secrets(run).remove()
    finally:
        endpoints.withdraw(run)
    if left := supervisor.members():
        names = ", ".join(f"{process.name} (pid {process.pid})" for process in left)
        raise StackError(f"still running: {names}", "run make down again")
