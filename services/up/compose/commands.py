"""`make status`, `make logs`, `make down`, `make clean` and `make images` where the services are containers.

All but the last find the containers by their labels, so that settings that have become wrong keep none of them from
working.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.compose import plan as planning
from services.up.compose import record, secrets, up
from services.up.compose.engine import ask, require
from services.up.compose.project import Container, Project
from services.up.compose.record import Composed
from services.up.native.commands import LOG_LINES, ROW

ID_LENGTH = 8


def status(run: RunDir) -> None:
    """Print a line for each container: state, id, uptime, health.

    Raises:
        StackError: nothing runs, or a service is not well.
    """
    composed, project = _recall(run)
    containers = project.containers()
    if not containers:
        raise StackError("nothing runs here", "make up")
    say(ROW.format("SERVICE", "STATE", "ID", "UPTIME", "HEALTH"))
    for container in containers:
        short = container.id[:ID_LENGTH]
        say(ROW.format(container.name, container.state, short, _uptime(container), container.problem or "ok"))
    say("ports: " + ", ".join(f"{name}={port}" for name, port in composed.ports.items()))
    missing = sorted(set(composed.services) - {container.service for container in containers})
    if sick := [container.name for container in containers if container.problem] + missing:
        raise StackError(f"not well: {', '.join(sick)}", f"make logs s={sick[0].partition('-')[0]}")


def _uptime(container: Container) -> str:
    if container.state != "running":
        return "-"
    # The engine writes more digits than Python 3.10 reads.
    started = datetime.fromisoformat(container.started[:19]).replace(tzinfo=timezone.utc)
    return str(timedelta(seconds=int((datetime.now(timezone.utc) - started).total_seconds())))


def logs(run: RunDir, service: str = "", follow: bool = False) -> None:
    """Print the last lines of one service's containers, or of all.

    Args:
        run: directory of the stack.
        service: its name; empty for all.
        follow: go on printing what is added, until interrupted.

    Raises:
        StackError: there is no such service, or nothing runs.
    """
    _, project = _recall(run)
    names = sorted({container.service for container in project.containers()})
    if not names:
        raise StackError("nothing runs here", "make up")
    if service and service not in names:
        raise StackError(f"there is no service {service!r}", f"the services are {', '.join(names)}")
    project.act("logs", f"--tail={LOG_LINES}", *(["--follow"] if follow else []), *([service] if service else []))


def down(run: RunDir) -> None:
    """Stop and remove the containers and the network; named volumes stay.

    Raises:
        StackError: something is left.
    """
    composed, project = _recall(run)
    if project.left():
        _remove(project, "stopping the containers")
    else:
        say("nothing runs here")
    secrets.remove(run)
    record.remember(run, replace(composed, up=False))


def clean(run: RunDir) -> None:
    """Remove containers, network and volumes: the queue's jobs too.

    Raises:
        StackError: something is left.
    """
    _, project = _recall(run)
    _remove(project, "removing the containers and volumes", "--volumes")
    for volume in project.volumes():
        ask(project.engine.docker, "volume", "rm", volume)


def images(settings: Settings, run: RunDir) -> None:
    """Build the image of reward server and workers.

    Raises:
        StackError: no engine answers, or it could not be built.
    """
    engine = require()
    project = Project(engine, planning.project_name())
    up.build(project, planning.describe(settings, run, engine, []), run)


def _remove(project: Project, doing: str, *options: str) -> None:
    with step(doing):
        project.act("--progress", "quiet", "down", "--remove-orphans", *options)
    if left := project.left():
        raise StackError(f"still there: {', '.join(left)}", "make down again")


def _recall(run: RunDir) -> tuple[Composed, Project]:
    composed = record.recall(run)
    if composed is None:
        raise StackError("nothing runs here", "make up")
    return composed, Project(require(), composed.project)
