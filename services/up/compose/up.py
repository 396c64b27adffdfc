"""`make up` with containers: make the plan and apply it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from services.stack.console import TAIL_LINES, error_in, say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import Settings
from services.up import model_servers, named_judges, summary
from services.up.compose import composition as composing
from services.up.compose.composition import Composition
from services.up.compose.engine import has_image, require
from services.up.compose.images import build
from services.up.compose.project import ComposeRecord, Project, project_name, require_own
from services.up.model_servers import ModelServer, is_required
from services.up.plan import Plan, RunningStack, Service, in_gib
from services.up.services import kind_of, remedy

MODEL_ARGUMENT = {"judge": 0, "reward-model": 0, "embedding": 1}
"""Index of the model in the command of each model server's container."""
SPARE_SECONDS = 120
"""Additional seconds to wait, so that a failing health check is reported before the wait times out."""


class StartFailure(StackError):
    """Raised if services did not start.

    Args:
        problem: cause of the first failure.
        remedy: what the user can do.
        services: names of all failed services.
    """

    def __init__(self, problem: str, remedy: str, services: Sequence[str]) -> None:
        super().__init__(problem, remedy)
        self.services = services


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """Return the plan of `make up` without changing anything.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        reason: reason for this deployment.

    Raises:
        StackError: no engine answers, or the stack cannot run here.
    """
    project = Project(require(), project_name())
    require_own(project, run)
    containers = project.containers()
    running = {container.service for container in containers if container.state == "running"}
    default = composing.judge_model(settings, composing.usable_gpus(project.engine))
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default), lambda *_: "")
    composition = composing.describe(settings, run, project, choice.chosen)
    unused = composing.unused_gpus(project.engine)
    return Plan(
        backend="compose",
        reason=reason,
        services=[_service(name, row, composition, settings) for name, row in composition.services.items()],
        running=running,
        ports=composition.ports,
        held={port for container in containers for port in container.ports},
        left_out={**({"GPU": unused} if unused else {}), **choice.left_out},
        warnings=choice.warnings,
        apply=partial(up, settings, run, project, choice.chosen),
    )


def up(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> RunningStack:
    """Build and start services that do not run yet, and wait until they are healthy.

    If an optional model server fails to start, the stack starts without it.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        project: Compose project.
        chosen: model servers to start.

    Raises:
        StackError: an image is unavailable, or a service does not start.
    """
    while True:
        composition = composing.describe(settings, run, project, chosen)
        file = prepare(composition, settings, run)
        try:
            names = ", ".join(composition.services)
            with step(f"starting {names}", f"{names} started"):
                start(composition, file, settings)
            break
        except StartFailure as failure:
            lost = [
                server for server in chosen if server.name in failure.services and not is_required(server, settings)
            ]
            if not lost:
                raise
            say(f"no {failure}")
        for server in lost:
            chosen = model_servers.exclude(chosen, server.name)
    cache = f"redis://:$(cat {run.secrets}/cache_password)@{settings.host}:{settings['CACHE_PORT']}/0"
    published = cache if "CACHE_PORT" in composition.ports else ""
    summarize = partial(summary.print_summary, settings, composition.urls, "the containers", published)
    return _started(settings, composition, summarize)


def prepare(composition: Composition, settings: Settings, run: RunDir) -> Path:
    """Write secrets and the compose file, fetch and build images, and return the path of the compose file.

    Raises:
        StackError: an image is unavailable.
    """
    composing.write_secrets(settings, run)
    project = composition.project
    file = composition.write(run)
    images = {service["image"] for service in composition.services.values() if "build" not in service}
    if missing := sorted(image for image in images if not has_image(project.engine, image)):
        with step(f"fetching {', '.join(missing)}", "images fetched"):
            if not project.run("pull", "--ignore-buildable", "--policy", "missing", files=[file]):
                raise StackError(
                    "an image cannot be fetched: the lines above say why",
                    "check that this machine can reach the images' registries, or load the images (docker load)",
                )
    build(project, settings["REWARDSTACK_IMAGE"], [file])
    composing.use_entry_points(composition)
    ComposeRecord(project.name, [*composition.services]).save(run)
    return composition.write(run)


def start(composition: Composition, file: Path, settings: Settings) -> None:
    """Start the services with Compose, wait until they are healthy, and set their restart policy.

    Raises:
        StartFailure: a service exited or is not healthy in time.
        StackError: Compose failed for another reason.
    """
    project, since = composition.project, datetime.now(timezone.utc).isoformat()
    seconds = max(settings.number(_timeout(name)) for name in composition.services) + SPARE_SECONDS
    wait = ["up", "--detach", "--remove-orphans", "--wait", "--wait-timeout", str(seconds)]
    is_started = project.run(*wait, files=[file])
    containers = project.containers()
    project.set_restart_policy(container for container in containers if container.is_healthy)
    if is_started:
        return
    failed = [container for container in containers if container.has_failed]
    failed = failed or [each for each in containers if each.state == "running" and not each.is_healthy]
    if not failed:
        raise StackError("docker compose up failed", "the lines above say why; then make up again")
    logs = {container.service: project.log(container, since) for container in failed}
    for service, log in logs.items():
        say("\n".join([f"--- last lines of {service}", *log.splitlines()[-TAIL_LINES:], "---"]))
    first = next((container for container in failed if container.state != "running"), failed[0])
    timeout = _timeout(first.service)
    problem = f"not healthy after {settings[timeout]} s ({timeout})"
    if first.state != "running":
        problem = "exited during startup"
    cause = error_in(logs[first.service]) or project.problem(first)
    help_ = f"{remedy(first.service, cause)}; then make up again"
    raise StartFailure(f"{first.service}: {problem}: {cause}", help_, [*logs])


def _timeout(service: str) -> str:
    """Return the name of the setting with a service's startup timeout."""
    row = SERVICES.get(kind_of(service))
    return row.startup_timeout if row else "UP_TIMEOUT"


def _started(settings: Settings, composition: Composition, summarize: Callable[[], None]) -> RunningStack:
    """Return the stack for the final check.

    If the cache is published, the check uses the cache and the model servers directly, else only the reward server.
    """
    seconds = 2 * float(settings["LLM_JUDGE_SERVER_TIMEOUT"])
    addresses = {"REWARD_SERVER_URL": composition.urls["REWARD_SERVER_URL"], "REWARD_SERVER_TIMEOUT": f"{seconds:g}"}
    if "CACHE_PORT" in composition.ports:
        addresses |= {**composition.urls, "REWARD_CACHE_URL": settings.cache_url}
    judge = composing.judge_model(settings, composing.usable_gpus(composition.project.engine))
    return RunningStack(
        settings, ["rules", *(server.name for server in composition.chosen)], addresses, judge, summarize
    )


def _service(name: str, row: Mapping[str, Any], composition: Composition, settings: Settings) -> Service:
    runs = row["image"]
    if "build" in row:
        runs += " (built here)"
    elif not has_image(composition.project.engine, runs):
        runs += " (to be fetched)"
    if kind_of(name) in MODEL_ARGUMENT and row.get("command"):
        runs += f", {row['command'][MODEL_ARGUMENT[kind_of(name)]]}"
    server = next((server for server in composition.chosen if server.name == name), None)
    limit = int(row.get("mem_limit", 0))
    needs = f"about {in_gib(model_servers.memory(server, settings))}" if server else ""
    return Service(name, runs, row.get("scale", 1), needs or (f"up to {in_gib(limit)}" if limit else ""))
