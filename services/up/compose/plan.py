"""What `make up` does where the services are containers."""

from __future__ import annotations

from functools import partial

from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.compose import composition, record
from services.up.compose.composition import Composition
from services.up.compose.engine import has_image, require
from services.up.compose.project import Project
from services.up.compose.up import up
from services.up.plan import Plan, Service, in_gib
from services.up.services import kind_of

MODEL = {"judge": 0, "embedding": 1}
"""Where the model stands in the command of the services that serve one."""


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """What `make up` does; nothing is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        reason: for containers.

    Raises:
        StackError: no engine answers, or it cannot be carried out here.
    """
    project = Project(require(), composition.project_name())
    _require_own(project, run)
    containers = project.containers()
    running = {container.service for container in containers if container.state == "running"}
    default = composition.judge_model(settings, composition.usable_gpus(project.engine))
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default), lambda _: "")
    described = composition.describe(settings, run, project, choice.chosen).read()
    unused = composition.unused_gpus(project.engine)
    return Plan(
        way="compose",
        reason=reason,
        services=[_service(name, described, settings) for name in described.services],
        running=running,
        ports=described.ports,
        held={port for container in containers for port in container.ports},
        left_out={**({"GPU": unused} if unused else {}), **choice.left_out},
        carry_out=partial(up, settings, run, project, choice.chosen),
    )


def _require_own(project: Project, run: RunDir) -> None:
    """See that the containers of this name are this tree's, and this directory's.

    Raises:
        StackError: they are not.
    """
    folder, last = project.folder(), record.recall(run)
    if folder not in (None, ROOT):
        raise StackError(
            f"the project {project.name} runs already, from {folder}",
            "make down there, or another name here: COMPOSE_PROJECT_NAME=rewardstack-2 make up",
        )
    if last and last.up and last.project != project.name:
        raise StackError(
            f"the project {last.project} runs from this directory (RUN_DIR), and not {project.name}",
            "make down first, or another RUN_DIR for the second one",
        )


def _service(name: str, described: Composition, settings: Settings) -> Service:
    configured = described.configured[name]
    runs = configured["image"]
    if "build" in configured:
        runs += " (built here)"
    elif not has_image(described.project.engine, runs):
        runs += " (to be fetched)"
    if kind_of(name) in MODEL and configured.get("command"):
        runs += f", {configured['command'][MODEL[kind_of(name)]]}"
    server = next((server for server in described.chosen if server.name == name), None)
    needs = f"about {in_gib(model_servers.memory(server, settings))}" if server else ""
    bound = int(configured.get("mem_limit", 0))
    return Service(name, runs, configured.get("scale", 1), needs or (f"up to {in_gib(bound)}" if bound else ""))
