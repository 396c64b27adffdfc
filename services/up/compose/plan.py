"""What `make up` does where the services are containers."""

from __future__ import annotations

from functools import partial

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
    project = Project(require(), project_name())
    require_own(project, run)
    containers = project.containers()
    running = {container.service for container in containers if container.state == "running"}
    default = composition.judge_model(settings, composition.usable_gpus(project.engine))
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default), lambda *_: "")
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
        warnings=choice.warnings,
        carry_out=partial(up, settings, run, project, choice.chosen),
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
