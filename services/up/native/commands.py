"""`make status`, `make logs` and `make down` where the services are local processes."""

from __future__ import annotations

import time
from datetime import timedelta

from services.stack.console import say, step, tail
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up.native.health import services
from services.up.native.supervision import Supervision

LOG_LINES = 100
FOLLOW_SECONDS = 0.5
ROW = "{:<10} {:<9} {:>8} {:>10}  {}"


def status(run: RunDir) -> None:
    """Print a line for each service: state, process id, uptime, health.

    Raises:
        StackError: nothing runs, or a service is not well.
    """
    running = run.recall()
    states = {state.name: state for state in Supervision(run).states()}
    if not states or not running:
        raise StackError("nothing runs here", "make up")
    problems = {service.name: service.probe(run, running) for service in services(running.services)}
    say(ROW.format("SERVICE", "STATE", "PID", "UPTIME", "HEALTH"))
    for name, problem in problems.items():
        state = states[name]
        uptime = str(timedelta(seconds=state.uptime))
        say(ROW.format(name, state.state.lower(), state.pid or "-", uptime, problem or "ok"))
    say("ports: " + ", ".join(f"{name}={port}" for name, port in running.ports.items()))
    if sick := [name for name, problem in problems.items() if problem]:
        raise StackError(f"not well: {', '.join(sick)}", f"make logs s={sick[0]}")


def logs(run: RunDir, service: str = "", follow: bool = False) -> None:
    """Print the last lines of one service's log, or of all.

    Args:
        run: directory of the stack.
        service: its name; empty for all.
        follow: go on printing what is added, until interrupted.

    Raises:
        StackError: there is no such service.
    """
    running = run.recall()
    names = running.services if running else sorted(log.stem for log in run.logs.glob("*.log"))
    if service and service not in names:
        raise StackError(f"there is no service {service!r}", f"the services are {', '.join(names)}")
    chosen = [service] if service else names
    offsets = {}
    for name in chosen:
        log = run.log(name)
        offsets[name] = log.stat().st_size if log.exists() else 0
        say(f"--- {log}\n{tail(log, LOG_LINES)}")
    while follow:
        time.sleep(FOLLOW_SECONDS)
        for name in chosen:
            offsets[name] = _print_added(run, name, offsets[name])


def _print_added(run: RunDir, name: str, offset: int) -> int:
    """Print what a log holds past an offset; supervisord begins a new file when one is full."""
    log = run.log(name)
    if not log.exists():
        return 0
    with log.open("rb") as file:
        if offset > log.stat().st_size:
            offset = 0
        file.seek(offset)
        for line in file.read().decode(errors="replace").splitlines():
            say(f"{name:<9} {line}")
        return file.tell()


def down(run: RunDir) -> None:
    """Stop everything; says so where nothing runs.

    Raises:
        StackError: something still runs.
    """
    supervision = Supervision(run)
    if not supervision.states() and not supervision.members():
        say("nothing runs here")
        return
    with step("stopping the services"):
        supervision.stop()
    if left := supervision.members():
        raise StackError(f"still there: {', '.join(f'{p.name} (pid {p.pid})' for p in left)}", "make down again")
