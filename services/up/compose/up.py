"""`make up` with containers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from services.stack.console import TAIL_LINES, error_in, say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import Settings
from services.up import model_servers, summary
from services.up.compose import composition as composing
from services.up.compose import mounts, record
from services.up.compose.composition import Composition
from services.up.compose.engine import has_image
from services.up.compose.images import build
from services.up.compose.project import Container, Project, file_options
from services.up.compose.record import Composed
from services.up.model_servers import ModelServer
from services.up.plan import Started
from services.up.services import kind_of, remedy

SPARE_SECONDS = 120
"""Beyond its timeout, in which the health check of a service that does not start fails by itself."""


def up(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> Started:
    """Build and start what does not run yet, and wait until it is healthy.

    A model server that fails to start and may be left out is left out.

    Args:
        settings: of the stack.
        run: its directory.
        project: of the containers.
        chosen: model servers.

    Raises:
        StackError: an image cannot be had, or a service does not start.
    """
    while True:
        composition = composing.describe(settings, run, project, chosen)
        file = prepare(composition, settings, run)
        with step(f"starting {', '.join(composition.services)}; waiting until every one is healthy"):
            error, failed = _start(composition, file, settings)
        if error is None:
            break
        lost = [server for server in chosen if server.name in failed and settings[server.switch] != "on"]
        if not lost:
            raise error
        say(f"no {error}")
        for server in lost:
            chosen = model_servers.without(chosen, server.name)
    cache = f"redis://:$(cat {run.secrets}/cache_password)@{settings.host}:{settings['CACHE_PORT']}/0"
    published = composing.is_cache_published(settings)
    farewell = partial(
        summary.farewell, settings, composition.urls, "the containers", cache if published else ""
    )
    return _started(settings, composition, farewell)


def prepare(composition: Composition, settings: Settings, run: RunDir) -> Path:
    """Write secrets and compose file, fetch and build images; return the file.

    Raises:
        StackError: an image cannot be had.
    """
    mounts.write_secrets(settings, run)
    project = composition.project
    file = composition.write(run)
    images = {service["image"] for service in composition.services.values() if "build" not in service}
    if missing := sorted(image for image in images if not has_image(project.engine, image)):
        with step(f"fetching {', '.join(missing)}"):
            if not project.run(*file_options([file]), "pull", "--ignore-buildable", "--policy", "missing"):
                raise StackError(
                    "an image cannot be fetched: the lines above say why",
                    "check that this machine reaches the images' registries, or load the images (docker load)",
                )
    build(project, settings["REWARDSTACK_IMAGE"], [file])
    composing.use_entry_points(composition)
    record.remember(run, Composed(project.name, [*composition.services]))
    return composition.write(run)


def _start(composition: Composition, file: Path, settings: Settings) -> tuple[StackError | None, list[str]]:
    """Have Compose start the services and wait until they are healthy.

    Returns:
        The error of the service that failed first and the names of all that failed; None where all are healthy.
    """
    project, since = composition.project, datetime.now(timezone.utc)
    timeouts = {SERVICES[kind].startup_timeout for name in composition.services if (kind := kind_of(name)) in SERVICES}
    seconds = max(settings.number(timeout) for timeout in timeouts) + SPARE_SECONDS
    wait = ["up", "--detach", "--remove-orphans", "--wait", "--wait-timeout", str(seconds)]
    started = project.run(*file_options([file]), *wait)
    containers = project.containers()
    project.set_restart_policy(container for container in containers if container.is_healthy)
    if started:
        return None, []
    failed = [container for container in containers if container.has_failed] or [
        container for container in containers if container.state == "running" and not container.is_healthy
    ]
    if not failed:
        raise StackError("docker compose up failed", "the lines above say why; then make up again")
    return _failure(project, failed, since.isoformat(), settings), [container.service for container in failed]


def _failure(project: Project, failed: Sequence[Container], since: str, settings: Settings) -> StackError:
    """Print the last lines of each service that failed; return the error of the first one."""
    logs = {}
    for service in sorted({container.service for container in failed}):
        logs[service] = project.logs(service, since)
        tail = "\n".join(logs[service].splitlines()[-TAIL_LINES:])
        say(f"--- last lines of {service}\n{tail}\n---")
    first = next((container for container in failed if container.state != "running"), failed[0])
    timeout = SERVICES[kind_of(first.service)].startup_timeout if kind_of(first.service) in SERVICES else "UP_TIMEOUT"
    why = f"not healthy after {settings[timeout]} s ({timeout})"
    if first.state != "running":
        why = "it ends while it is starting"
    cause = error_in(logs[first.service]) or project.problem(first)
    return StackError(f"{first.service}: {why}: {cause}", f"{remedy(first.service, cause)}; then make up again")


def _started(settings: Settings, composition: Composition, summarize: Callable[[], None]) -> Started:
    """Have samples scored directly where the cache is published, else by the reward server, which has it beside it."""
    seconds = 2 * float(settings["LLM_JUDGE_SERVER_TIMEOUT"])
    addresses = {"REWARD_SERVER_URL": composition.urls["REWARD_SERVER_URL"], "REWARD_SERVER_TIMEOUT": f"{seconds:g}"}
    if composing.is_cache_published(settings):
        addresses |= {**composition.urls, "REWARD_CACHE_URL": settings.cache_url}
    judge = composing.judge_model(settings, composing.usable_gpus(composition.project.engine))
    return Started(settings, ["rules", *(server.name for server in composition.chosen)], addresses, judge, summarize)
