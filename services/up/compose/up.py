"""`make up` with containers: from the plan to a table of scored samples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from services.stack.console import TAIL_LINES, error_in, say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import model_servers, samples
from services.up.compose import composition as composing
from services.up.compose import images, override, publish, record, secrets, users_files
from services.up.compose.composition import Composition
from services.up.compose.engine import has_image, require
from services.up.compose.project import Container, Project, project_name
from services.up.compose.record import Composed
from services.up.model_servers import ModelServer
from services.up.services import remedy

BUILT = "rules"
"""The service whose image is built; the workers have the same one, and would build it a second time."""


def up(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> None:
    """Build and start what is not there yet, wait until it is well, and score the shipped samples.

    Args:
        settings: of the stack.
        run: its directory.
        project: of the containers.
        chosen: model servers.

    Raises:
        StackError: an image cannot be had, a service does not come up, or a sample is not scored.
    """
    composition = _compose(settings, run, project, chosen)
    build(composition)
    with step(f"starting {', '.join(composition.services)}; waiting until every one is well"):
        lost = _start_all(composition, chosen, settings)
    if lost:
        for server in lost:
            chosen = model_servers.without(chosen, server.name)
        with step("starting without it"):
            composition = _compose(settings, run, project, chosen)
            _start_all(composition, chosen, settings)
    with step("scoring the shipped samples"):
        _score(settings, run, composition, ["rules", *(server.name for server in chosen)])
    cache = f"redis://:$(cat {secrets.folder(run)}/cache_password)@{settings.host}:{settings['CACHE_PORT']}/0"
    samples.farewell(settings, composition.urls, "the containers", cache if composing.published_cache(settings) else "")


def _compose(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> Composition:
    """What Compose is handed, once the files that it names are there, and no service runs that is not in it.

    Raises:
        StackError: Compose cannot read the files, or an image cannot be had.
    """
    composition = composing.describe(settings, run, project, chosen).read()
    secrets.write(settings, run)
    _fetch(composition)
    programs = images.programs(project.engine, composition.configured)
    composition = replace(composition, environment={**composition.environment, **programs}).read()
    written = override.write(run, composition.configured, users_files.mounts(settings), composition.further)
    record.remember(run, Composed(project.name, composition.services))
    if gone := sorted({container.service for container in project.containers()} - {*composition.services}):
        project.act("rm", "--stop", "--force", *gone)
    return replace(composition, files=[*composition.files, written])


def _fetch(composition: Composition) -> None:
    """Fetch the images that are not here yet.

    Raises:
        StackError: one cannot be had.
    """
    images = {service["image"] for service in composition.configured.values() if "build" not in service}
    missing = sorted(image for image in images if not has_image(composition.project.engine, image))
    if not missing:
        return
    with step(f"fetching {', '.join(missing)}"):
        if not composition.act("pull", "--ignore-buildable", "--policy", "missing"):
            raise StackError(
                "an image cannot be fetched: the lines above say why",
                "see that this machine reaches the images' registries, or load the images (docker load)",
            )


def build_alone(settings: Settings, run: RunDir, registry: str) -> None:
    """Build the image of reward server and workers, without starting anything.

    Args:
        settings: of the stack.
        run: its directory.
        registry: that the image is pushed to; empty for none.

    Raises:
        StackError: no engine answers, it could not be built, or the registry does not take it.
    """
    if registry:
        publish.host_of(registry)
    project = Project(require(), project_name())
    composition = composing.describe(settings, run, project, [])
    build(composition)
    if registry:
        publish.publish(project.engine, composition.environment["REWARDSTACK_IMAGE"], registry)


def build(composition: Composition) -> None:
    """Build the image of reward server and workers; quick where nothing has changed.

    Raises:
        StackError: it could not be built.
    """
    image = composition.environment["REWARDSTACK_IMAGE"]
    with step(f"building {image} (the first time takes minutes)"):
        if not composition.act("build", BUILT):
            raise StackError(f"{image} could not be built", "the lines above say why; then make up again")


def _start_all(composition: Composition, chosen: Sequence[ModelServer], settings: Settings) -> list[ModelServer]:
    """Start every service; returns the model servers that did not become well and may be left out.

    Raises:
        StackError: another one did not become well; the last lines of its log are printed first.
    """
    models = [server.name for server in chosen]
    _start(composition, {*composition.services} - {*models}, settings, "UP_TIMEOUT")
    if models:
        composition.act("up", "--detach", *models)
    return [server for server in chosen if not _loads(composition, server, settings)]


def _start(composition: Composition, services: Collection[str], settings: Settings, limit: str) -> None:
    """Have Compose start services and wait until they are well; those that are will be kept up.

    Raises:
        StackError: one is not well in time; the last lines of its log are printed first.
    """
    started = composition.act("up", "--detach", "--wait", "--wait-timeout", settings[limit], *sorted(services))
    project = composition.project
    containers = [container for container in project.containers() if container.service in services]
    project.keep_up(container for container in containers if container.well)
    if not started:
        raise _failure(project, [one for one in containers if not one.well], f"{settings[limit]} s ({limit})")


def _failure(project: Project, sick: Sequence[Container], seconds: str) -> StackError:
    """What went wrong, from the containers that are not well; those that were never started wait for others."""
    guilty = [container for container in sick if container.started]
    if not guilty:
        return StackError("docker compose up failed", "the lines above say why; then make up again")
    for service in sorted({container.service for container in guilty}):
        say(f"--- last lines of {service}")
        project.act("logs", f"--tail={TAIL_LINES}", "--no-log-prefix", service)
        say("---")
    first = next((container for container in guilty if container.state != "running"), guilty[0])
    why = f"not well after {seconds}" if first.state == "running" else "it ends while it is starting"
    cause = error_in(project.log(first)) or project.problem(first)
    return StackError(f"{first.service}: {why}: {cause}", f"{remedy(first.service, cause)}; then make up again")


def _loads(composition: Composition, server: ModelServer, settings: Settings) -> bool:
    """Wait until a model server is well; where it is not and may be left out, say why.

    Raises:
        StackError: it is not, and the settings insist on it.
    """
    try:
        _start(composition, [server.name], settings, "MODEL_UP_TIMEOUT")
    except StackError as error:
        if settings[server.switch] == "on":
            raise
        say(f"==> no {error}")
        return False
    return True


def _score(settings: Settings, run: RunDir, composition: Composition, services: Sequence[str]) -> None:
    """Directly where the cache is published, else by the reward server, which has it beside itself."""
    seconds = 2 * float(settings["LLM_JUDGE_SERVER_TIMEOUT"])
    addresses = {"REWARD_SERVER_URL": composition.urls["REWARD_SERVER_URL"], "REWARD_SERVER_TIMEOUT": f"{seconds:g}"}
    if composing.published_cache(settings):
        addresses |= {**composition.urls, "REWARD_CACHE_URL": settings.cache_url}
    judge = composing.judge_model(settings, composing.usable_gpus(composition.project.engine))
    samples.score(settings, run, services, addresses, judge)
