"""`make up` with containers: from the settings to a table of scored samples."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.stack import ports
from services.stack.console import say, step, tail
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.up import model_servers, samples
from services.up.compose import images, override, record, secrets, users_files, waiting
from services.up.compose import plan as planning
from services.up.compose.engine import require
from services.up.compose.plan import Plan
from services.up.compose.project import Project, steered
from services.up.compose.record import Composed
from services.up.native.health import published_port

BUILT = "rules"
"""The service whose image is built; the workers have the same one, and would build it a second time."""
SAY_SECONDS = 30.0
POLL_SECONDS = 0.5


def up(settings: Settings, run: RunDir) -> None:
    """Build and start what is not there yet, wait until it is well, and score the shipped samples.

    Args:
        settings: of the stack.
        run: its directory.

    Raises:
        StackError: no engine answers, a port is taken, an image cannot be had, a service does not come up, or a sample
            is not scored.
    """
    project, plan, chosen = _prepare(settings, run)
    configured = _services(project, plan)
    services = sorted(configured)
    secrets.write(settings, run)
    plan = replace(plan, files=[*plan.files, override.write(run, configured, users_files.mounts(settings))])
    record.remember(run, Composed(project.name, services, {name: port for name, (_, port) in plan.ports.items()}))
    build(project, plan, run)
    _logged(
        "fetching the images that are not here yet",
        project.command(*plan.arguments(), "pull", "--ignore-buildable", "--policy", "missing"),
        plan,
        run.log("compose-pull"),
        "see that this machine reaches the images' registries, or load the images (docker load)",
    )
    plan = replace(plan, environment={**plan.environment, **images.programs(project.engine, configured)})
    with step(f"starting {', '.join(services)}; waiting until every one is well"):
        _start(project, plan, services, settings, run.log("compose-up"))
    with step("scoring the shipped samples"):
        _score(settings, run, plan, ["rules", *(server.name for server in chosen)])
    samples.farewell(settings, plan.urls, "the containers")


def _prepare(settings: Settings, run: RunDir) -> tuple[Project, Plan, list[model_servers.ModelServer]]:
    """The project, the plan for it and its model servers.

    Raises:
        StackError: it cannot be carried out here.
    """
    project = Project(require(), planning.project_name())
    containers = project.containers()
    for container in containers:
        if container.folder not in ("", str(ROOT)):
            raise StackError(
                f"the project {project.name} runs already, from {container.folder}",
                "make down there, or another name here: COMPOSE_PROJECT_NAME=rewardstack-2 make up",
            )
    running = {container.service for container in containers if container.state == "running"}
    chosen = model_servers.choose(settings, running, lambda _: "")
    planning.say_what_is_unused(project.engine)
    plan = planning.describe(settings, run, project.engine, chosen)
    last = record.recall(run)
    if last and last.up and last.project != project.name:
        raise StackError(
            f"the project {last.project} runs from this directory (RUN_DIR), and not {project.name}",
            "make down first, or another RUN_DIR for the second one",
        )
    ports.require_free(plan.ports, last.ports.values() if last and running else ())
    return project, plan, chosen


def _services(project: Project, plan: Plan) -> dict[str, dict[str, Any]]:
    """The services of the plan's files by name, as Compose reads them.

    Raises:
        StackError: Compose cannot read them; says why.
    """
    done = subprocess.run(
        project.command(*plan.arguments(), "config", "--format", "json"),
        cwd=ROOT,
        env=steered(plan.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StackError(f"docker compose config: {done.stderr.strip()}", "see docs/settings.md")
    services: dict[str, dict[str, Any]] = json.loads(done.stdout)["services"]
    return services


def build(project: Project, plan: Plan, run: RunDir) -> None:
    """Build the image of reward server and workers; quick where nothing has changed.

    Raises:
        StackError: it could not be built; its last lines are printed first.
    """
    _logged(
        f"building {plan.environment['REWARDSTACK_IMAGE']} (the first time takes minutes)",
        project.command("--progress", "plain", *plan.arguments(), "build", BUILT),
        plan,
        run.log("compose-build"),
        "the lines above say why; all of them are in the log that is named there",
    )


def _logged(doing: str, command: Sequence[str], plan: Plan, log: Path, remedy: str) -> None:
    with step(doing), _started(command, plan, log) as process:
        start = said = time.monotonic()
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            if time.monotonic() - said > SAY_SECONDS:
                said = time.monotonic()
                say(f"    still at it after {said - start:.0f} s ({log})")
        if process.returncode != 0:
            say(f"--- last lines of {log}\n{tail(log)}\n---")
            raise StackError(f"{doing}: docker compose failed", remedy)


@contextmanager
def _started(command: Sequence[str], plan: Plan, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command of Compose that writes into a log; ended with whoever waits for it."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=steered(plan.environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _start(project: Project, plan: Plan, services: Sequence[str], settings: Settings, log: Path) -> None:
    command = project.command("--progress", "plain", *plan.arguments(), "up", "--detach", "--remove-orphans")
    with _started(command, plan, log) as process:
        waiting.wait(project, services, settings, process, log)
    for name in plan.ports.keys() & {"REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT"}:
        if problem := published_port(settings, name):
            raise StackError(f"{name}: the gateway does not answer: {problem}", "make logs s=gateway")


def _score(settings: Settings, run: RunDir, plan: Plan, services: Sequence[str]) -> None:
    """Directly where the cache is published, else by the reward server, which has it beside itself."""
    seconds = 2 * float(settings["LLM_JUDGE_SERVER_TIMEOUT"])
    addresses = {"REWARD_SERVER_URL": plan.urls["REWARD_SERVER_URL"], "REWARD_SERVER_TIMEOUT": f"{seconds:g}"}
    if planning.published_cache(settings):
        addresses |= {**plan.urls, "REWARD_CACHE_URL": settings.cache_url}
    samples.score(settings, run, services, addresses)
