"""A Compose project: `docker compose` for it, and its containers as `docker compose ps` has them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.up.compose import record
from services.up.compose.engine import Engine, ask

NAME = "rewardstack"
"""Of the project, unless COMPOSE_PROJECT_NAME says otherwise."""
LABEL = "com.docker.compose.project"
STEERING = ("COMPOSE_ENV_FILES", "COMPOSE_FILE", "COMPOSE_PATH_SEPARATOR", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME")
"""Variables that would make Compose read something else than it is told."""
KEPT_UP = "unless-stopped"
SAID_CHARACTERS = 200
SEARCHED_LINES = 2000


@dataclass(frozen=True)
class Container:
    """One container.

    Args:
        name: its own, such as `rewardstack-judge-2`.
        service: of which it is a replica.
        id: the engine's.
        state: in the engine's words, such as `running` or `exited`.
        health: `healthy`, `unhealthy` or `starting`; empty where nothing checks it.
        status: both in words, and for how long.
        ports: of this machine that lead to it.
    """

    name: str
    service: str
    id: str
    state: str
    health: str
    status: str
    ports: tuple[int, ...]

    @property
    def well(self) -> bool:
        """Whether it runs, and its health check agrees."""
        return self.state == "running" and self.health in ("", "healthy")

    @property
    def started(self) -> bool:
        """Whether it was ever started; one that was not waits for another one."""
        return self.state != "created"


class Project:
    """A project of an engine.

    Args:
        engine: that has it.
        name: of the project.
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def containers(self) -> list[Container]:
        """Its containers, those of `docker compose run` aside, whatever the settings are now.

        Raises:
            StackError: the engine does not answer.
        """
        lines = ask(*self.command("ps", "--all", "--format", "json")).splitlines()
        found = [_container(json.loads(line)) for line in lines]
        return sorted(found, key=lambda container: (container.service, len(container.name), container.name))

    def folder(self) -> Path | None:
        """Where it was started from; None where there is none of this name."""
        listed = json.loads(ask(*self.command("ls", "--all", "--format", "json")))
        files = next((project["ConfigFiles"] for project in listed if project["Name"] == self.name), "")
        return Path(files.split(",")[0]).parent if files else None

    def volumes(self) -> list[str]:
        """The names of its volumes."""
        listed = ask(self.engine.docker, "volume", "ls", "--quiet", f"--filter=label={LABEL}={self.name}")
        return listed.split()

    def command(self, *arguments: str) -> list[str]:
        """The command line of `docker compose` for it."""
        return [self.engine.docker, "compose", "--project-name", self.name, *arguments]

    def act(self, *arguments: str, environment: Mapping[str, str] | None = None) -> bool:
        """Run `docker compose` in view of the user; returns whether it succeeded.

        Args:
            arguments: its options and command; files by their whole path.
            environment: variables for the files.
        """
        return (
            subprocess.run(
                self.command(*arguments), cwd="/", env=steered(environment or {}), stdin=subprocess.DEVNULL, check=False
            ).returncode
            == 0
        )

    def keep_up(self, containers: Iterable[Container]) -> None:
        """Have the engine start these again whenever they end, also after a reboot."""
        if ids := [container.id for container in containers]:
            ask(self.engine.docker, "update", "--restart", KEPT_UP, *ids)

    def log(self, container: Container) -> str:
        """The last lines of a container since it was started last, of both its outputs."""
        since = ask(self.engine.docker, "inspect", "--format={{.State.StartedAt}}", container.id).strip()
        done = subprocess.run(
            [self.engine.docker, "logs", f"--since={since}", f"--tail={SEARCHED_LINES}", container.id],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.stdout

    def problem(self, container: Container) -> str:
        """Its status, and what its last health check said."""
        state = json.loads(ask(self.engine.docker, "inspect", "--format={{json .State}}", container.id))
        checks = (state.get("Health") or {}).get("Log") or [{}]
        said = " ".join(checks[-1].get("Output", "").split())[:SAID_CHARACTERS]
        return f"{container.status}: {said}" if said and state["Running"] else container.status


def project_name() -> str:
    """Under which the engine keeps the stack."""
    return os.environ.get("COMPOSE_PROJECT_NAME") or NAME


def require_own(project: Project, run: RunDir) -> None:
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


def steered(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for Compose: the user's, but for what would steer it elsewhere, and what is given."""
    return {name: value for name, value in os.environ.items() if name not in STEERING} | {**environment}


def _container(entry: Mapping[str, Any]) -> Container:
    published = {int(binding["PublishedPort"]) for binding in entry["Publishers"] or ()} - {0}
    return Container(
        name=entry["Name"],
        service=entry["Service"],
        id=entry["ID"],
        state=entry["State"],
        health=entry["Health"],
        status=entry["Status"],
        ports=tuple(published),
    )
