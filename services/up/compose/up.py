"""`make up` and `make images` with containers: make the plan and apply it, build and push the image."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from services.stack.console import TAIL_LINES, error_in, say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import SECRETS, Settings
from services.up import model_servers, named_judges, summary
from services.up.compose import composition as composing
from services.up.compose.composition import Composition
from services.up.compose.engine import ask, has_image, require
from services.up.compose.project import ComposeRecord, Project, project_name, require_own
from services.up.model_servers import ModelServer, is_required
from services.up.plan import Plan, RunningStack, Service, in_gib
from services.up.services import kind_of, remedy

MODEL_ARGUMENT = {"judge": 0, "reward-model": 0, "embedding": 1}
"""Index of the model in the command of each model server's container."""
SPARE_SECONDS = 120
"""Additional seconds to wait, so that a failing health check is reported before the wait times out."""
REGISTRY = re.compile(r"(?P<host>[a-z0-9][a-z0-9.-]{0,252}(?::\d{1,5})?)(?:/[a-z0-9][a-z0-9._-]{0,127}){0,8}")


class StartFailure(StackError):
    """Raised if services did not start; `services` has their names. The message describes one of them."""

    def __init__(self, problem: str, remedy: str, services: Sequence[str]) -> None:
        super().__init__(problem, remedy)
        self.services = services


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """Return the plan of `make up` without changing anything.

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
    _build(project, settings["REWARDSTACK_IMAGE"], file)
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
    project.enable_restarts(container for container in containers if container.is_healthy)
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


def _build(project: Project, image: str, file: Path, environment: Mapping[str, str] | None = None) -> None:
    """Build the image of reward server and workers. This is fast if nothing has changed.

    Raises:
        StackError: the build fails.
    """
    with step(f"building {image} (the first time takes minutes)", f"{image} built"):
        if not project.run("build", "rules", files=[file], environment=environment):
            raise StackError(f"{image} could not be built", "the lines above say why; then make up again")


def make_image(settings: Settings, run: RunDir, registry: str) -> None:
    """Build the image without starting anything, and push it to the registry if one is given.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        registry: registry such as `registry.example.com/team`; empty to push nothing.

    Raises:
        StackError: no engine answers, the build fails, or the registry rejects the image.
    """
    host = registry_host(registry) if registry else ""
    project, image = Project(require(), project_name()), settings["REWARDSTACK_IMAGE"]
    environment = {**settings, **dict.fromkeys(SECRETS, ""), "RUN_DIR": str(run.path)}
    _build(project, image, ROOT / "compose.yaml", environment)
    if not registry:
        return
    docker, name = project.engine.docker, f"{registry}/{image.rpartition('/')[2]}"
    ask(docker, "tag", image, name)
    with step(f"pushing {name}", f"{name} pushed"):
        if subprocess.run([docker, "push", name], cwd="/", stdin=subprocess.DEVNULL, check=False).returncode != 0:
            raise StackError(
                f"{name} could not be pushed: the lines above say why",
                f"check that this machine can reach {host} and may push to it: docker login {host}",
            )
    say("\nFor the values of helm/rewardstack:\n")
    say(f"  rules: {{image: {name}}}", whole=True)


def registry_host(registry: str) -> str:
    """Return the host of a registry.

    Raises:
        StackError: the text is not a registry, or names no host, so that the engine would push to a public registry.
    """
    found = REGISTRY.fullmatch(registry)
    if not found or not re.search(r"[.:]|^localhost$", found["host"]):
        raise StackError(f"REGISTRY={registry!r} is not a registry", "name its host, too: registry.example.com/team")
    return found["host"]


def _timeout(service: str) -> str:
    """Return the name of the setting with a service's startup timeout."""
    row = SERVICES.get(kind_of(service))
    return row.startup_timeout if row else "UP_TIMEOUT"


def _started(settings: Settings, composition: Composition, summarize: Callable[[], None]) -> RunningStack:
    """Return the stack for the final check.

    If the port of the cache is published, the check also uses the cache and the model servers directly. Otherwise, it
    uses only the reward server.
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
