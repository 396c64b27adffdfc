"""What `make up` does where the services are containers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.compose import composition
from services.up.compose.composition import Composition
from services.up.compose.engine import has_image, require
from services.up.compose.project import Project, project_name, require_own
from services.up.compose.up import up
from services.up.plan import Plan, Service, in_gib
from services.up.services import kind_of

MODEL_ARGUMENT = {"judge": 0, "embedding": 1}
"""Where the model is in the command of a model server's container."""


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """Return what `make up` does; nothing is changed.

    Args:
        settings: of the stack.
        run: its directory.
        reason: for containers.

    Raises:
        StackError: no engine answers, or it cannot be done here.
    """
    project = Project(require(), project_name())
    require_own(project, run)
    containers = project.containers()
    running = {container.service for container in containers if container.state == "running"}
    default = composition.judge_model(settings, composition.usable_gpus(project.engine))
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default), lambda *_: "")
    described = composition.describe(settings, run, project, choice.chosen)
    unused = composition.unused_gpus(project.engine)
    return Plan(
        backend="compose",
        reason=reason,
        services=[_service(name, row, described, settings) for name, row in described.services.items()],
        running=running,
        ports=described.ports,
        held={port for container in containers for port in container.ports},
        left_out={**({"GPU": unused} if unused else {}), **choice.left_out},
        warnings=choice.warnings,
        apply=partial(up, settings, run, project, choice.chosen),
    )


def _service(name: str, row: Mapping[str, Any], described: Composition, settings: Settings) -> Service:
    runs = row["image"]
    if "build" in row:
        runs += " (built here)"
    elif not has_image(described.project.engine, runs):
        runs += " (to be fetched)"
    if kind_of(name) in MODEL_ARGUMENT and row.get("command"):
        runs += f", {row['command'][MODEL_ARGUMENT[kind_of(name)]]}"
    server = next((server for server in described.chosen if server.name == name), None)
    limit = int(row.get("mem_limit", 0))
    needs = f"about {in_gib(model_servers.memory(server, settings))}" if server else ""
    return Service(name, runs, row.get("scale", 1), needs or (f"up to {in_gib(limit)}" if limit else ""))
