"""Run `make status`, `make logs`, `make down` and `make clean` for containers.

The commands find the containers by project name, so they work even if settings are invalid. They need no third-party
packages.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from itertools import groupby

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.services_table import SERVICES
from services.up.compose.engine import ask, require
from services.up.compose.project import ComposeRecord, Project
from services.up.services import LOG_LINES, kind_of

ROWS = "table {{.Service}}\t{{.Name}}\t{{.Status}}\t{{.Ports}}"


def status(run: RunDir, as_json: bool = False) -> None:
    """Print the status, health and ports of each container, as a table or as one JSON object.

    Raises:
        StackError: nothing runs, or a service is not healthy.
    """
    composed, project = _load(run)
    containers = project.containers()
    if not containers:
        raise StackError("nothing runs here", "make up")
    unhealthy = [container for container in containers if not container.is_healthy]
    problems = {container.name: project.problem(container) for container in unhealthy}
    if as_json:
        records = {each.name: {**asdict(each), "health": problems.get(each.name, "ok")} for each in containers}
        fields = ("service", "state", "status", "health", "ports")
        rows = [{"container": name, **{field: row[field] for field in fields}} for name, row in records.items()]
        say(json.dumps({"deployment": "compose", "services": rows}, indent=1))
    else:
        project.run("ps", "--all", "--format", ROWS)
        for name, problem in problems.items():
            say(f"{name}: {problem}")
    missing = sorted({*composed.services} - {container.service for container in containers})
    # A container in state `created` waits for another service. List it last, because the remedy names the first one.
    names = [container.service for container in sorted(unhealthy, key=lambda each: each.state == "created")] + missing
    if names:
        raise StackError(f"unhealthy: {', '.join(names)}", f"make logs s={names[0]}")


def logs(run: RunDir, service: str = "", follow: bool = False) -> None:
    """Print the last log lines of one service, or of all services.

    Args:
        run: run directory of the stack.
        service: name of the service; empty for all services.
        follow: whether to print new lines until interrupted.

    Raises:
        StackError: the service is unknown, or nothing runs.
    """
    _, project = _load(run)
    names = sorted({container.service for container in project.containers()})
    if not names:
        raise StackError("nothing runs here", "make up")
    if service and service not in names:
        raise StackError(f"there is no service {service!r}", f"the services are {', '.join(names)}")
    project.run("logs", f"--tail={LOG_LINES}", *(["--follow"] if follow else []), *([service] if service else []))


def down(run: RunDir) -> None:
    """Stop and remove the containers. Also remove the networks and the files with secrets, but keep named volumes.

    Raises:
        StackError: a container could not be removed.
    """
    composed, project = _load(run)
    running = {container.service for container in project.containers()}
    if running:
        with step("stopping the containers", "containers stopped"):
            # Stop in the reverse start order of the table of services, so that each service drains before the services
            # that it uses. Compose would follow `depends_on`, in which the gateway does not depend on judges.
            for _, names in groupby(sorted(running, key=_start_order, reverse=True), _start_order):
                project.run("stop", *names)
            _remove(project)
    else:
        say("nothing runs here")
    shutil.rmtree(run.secrets, ignore_errors=True)
    replace(composed, up=False).save(run)


def clean(run: RunDir) -> None:
    """Remove containers, networks and volumes, including the jobs in the queue.

    Raises:
        StackError: a container could not be removed.
    """
    _, project = _load(run)
    with step("removing the containers and volumes", "containers and volumes removed"):
        _remove(project, "--volumes")
    for volume in project.volumes():
        ask(project.engine.docker, "volume", "rm", volume)


def _start_order(service: str) -> int:
    row = SERVICES.get(kind_of(service))
    return row.start_order if row else 0


def _remove(project: Project, *options: str) -> None:
    removed = project.run("down", "--remove-orphans", *options)
    if left := [container.name for container in project.containers()]:
        raise StackError(f"containers not removed: {', '.join(left)}", "run make down again")
    if not removed:
        raise StackError("docker compose down failed", "the lines above say why; then run make down again")


def _load(run: RunDir) -> tuple[ComposeRecord, Project]:
    composed = ComposeRecord.load(run)
    if composed is None:
        raise StackError("nothing runs here", "make up")
    return composed, Project(require(), composed.project)
