"""`make status`, `make logs`, `make down` and `make clean` where the services are containers.

They find the containers by the name of their project, so that settings that have become wrong keep none of them from
working, and need nothing but Python itself, so that a `.venv` that is not whole does not either.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import Any

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up.compose import record
from services.up.compose.engine import ask, require
from services.up.compose.project import Container, Project
from services.up.compose.record import Composed
from services.up.services import LOG_LINES

ROWS = "table {{.Service}}\t{{.Name}}\t{{.Status}}\t{{.Ports}}"


def status(run: RunDir, as_json: bool = False) -> None:
    """Print a line for each container: since when it runs, its health, its ports.

    Args:
        run: directory of the stack.
        as_json: print one JSON object instead.

    Raises:
        StackError: nothing runs, or a service is not well.
    """
    composed, project = _recall(run)
    containers = project.containers()
    if not containers:
        raise StackError("nothing runs here", "make up")
    sick = sorted((one for one in containers if not one.well), key=lambda one: not one.started)
    if as_json:
        services = [_record(one, project.problem(one) if one in sick else "ok") for one in containers]
        say(json.dumps({"way": "compose", "services": services}, indent=1))
    else:
        project.act("ps", "--all", "--format", ROWS)
        for container in sick:
            say(f"{container.name}: {project.problem(container)}")
    missing = sorted(set(composed.services) - {container.service for container in containers})
    if names := [*(container.service for container in sick), *missing]:
        raise StackError(f"not well: {', '.join(names)}", f"make logs s={names[0]}")


def _record(one: Container, health: str) -> dict[str, Any]:
    own = {"service": one.service, "container": one.name, "state": one.state, "status": one.status, "health": health}
    return {**own, "ports": list(one.ports)}


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
    """Stop and remove the containers and the networks; named volumes stay.

    Raises:
        StackError: something is left.
    """
    composed, project = _recall(run)
    if project.containers():
        _remove(project, "stopping the containers")
    else:
        say("nothing runs here")
    shutil.rmtree(run.secrets, ignore_errors=True)
    record.remember(run, replace(composed, up=False))


def clean(run: RunDir) -> None:
    """Remove containers, networks and volumes: the queue's jobs too.

    Raises:
        StackError: something is left.
    """
    _, project = _recall(run)
    _remove(project, "removing the containers and volumes", "--volumes")
    for volume in project.volumes():
        ask(project.engine.docker, "volume", "rm", volume)


def _remove(project: Project, doing: str, *options: str) -> None:
    with step(doing):
        removed = project.act("down", "--remove-orphans", *options)
    if left := [container.name for container in project.containers()]:
        raise StackError(f"still there: {', '.join(left)}", "make down again")
    if not removed:
        raise StackError("docker compose down failed", "the lines above say why; then make down again")


def _recall(run: RunDir) -> tuple[Composed, Project]:
    composed = record.recall(run)
    if composed is None:
        raise StackError("nothing runs here", "make up")
    return composed, Project(require(), composed.project)
