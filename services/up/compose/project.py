"""The containers of a Compose project as the engine has them: found by their labels, whatever the settings are now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.stack.errors import StackError
from services.up.compose.engine import Engine, ask

LABEL = "com.docker.compose"
STEERING = ("COMPOSE_ENV_FILES", "COMPOSE_FILE", "COMPOSE_PATH_SEPARATOR", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME")
"""Variables that would make Compose read something else than it is told."""


@dataclass(frozen=True)
class Container:
    """One container.

    Args:
        name: of the service; a second replica's has a number behind it, such as `judge-2`.
        service: of which it is a replica.
        id: the engine's.
        state: in the engine's words, such as `running` or `restarting`.
        health: `healthy`, `unhealthy` or `starting`; empty where nothing checks it.
        said: what its last health check said.
        restarts: how often the engine has started it again.
        started: when it was started last, in ISO 8601.
        folder: of the compose file.
    """

    name: str
    service: str
    id: str
    state: str
    health: str
    said: str
    restarts: int
    started: str
    folder: str

    @property
    def problem(self) -> str:
        """What is wrong with it; empty where it is well."""
        if self.state != "running":
            return self.state
        if self.health in ("", "healthy"):
            return ""
        return f"{self.health}: {self.said}" if self.said else self.health


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
        """Its containers by service and number, those of `docker compose run` aside.

        Raises:
            StackError: the engine does not answer.
        """
        chosen = [f"--filter=label={LABEL}.project={self.name}", f"--filter=label={LABEL}.oneoff=False"]
        ids = ask(self.engine.docker, "ps", "--all", "--quiet", "--no-trunc", *chosen).split()
        found = [_container(entry) for id in ids for entry in self._inspect(id)]
        return sorted(found, key=lambda container: (container.service, len(container.name), container.name))

    def volumes(self) -> list[str]:
        """The names of its volumes."""
        return ask(self.engine.docker, "volume", "ls", "--quiet", f"--filter=label={LABEL}.project={self.name}").split()

    def left(self) -> list[str]:
        """Containers and networks of it that are there."""
        networks = ask(
            self.engine.docker, "network", "ls", f"--filter=label={LABEL}.project={self.name}", "--format={{.Name}}"
        )
        return [*(container.name for container in self.containers()), *networks.split()]

    def command(self, *arguments: str) -> list[str]:
        """The command line of `docker compose` for it."""
        return [self.engine.docker, "compose", "--project-name", self.name, *arguments]

    def act(self, *arguments: str) -> int:
        """Run `docker compose` on what the engine has of it, in view of the user; returns its exit status."""
        colours = [] if sys.stdout.isatty() else ["--ansi=never"]
        return subprocess.run(self.command(*colours, *arguments), cwd="/", env=steered({}), check=False).returncode

    def last_lines(self, container: Container, lines: int) -> str:
        """The last lines that a container wrote."""
        done = subprocess.run(
            [self.engine.docker, "logs", "--tail", str(lines), container.id],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.stdout.rstrip()

    def _inspect(self, id: str) -> Sequence[Mapping[str, Any]]:
        try:
            entries: list[dict[str, Any]] = json.loads(ask(self.engine.docker, "inspect", "--type=container", id))
        except StackError:
            return []  # it went between the two questions
        return entries


def steered(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for Compose: the user's, but for what would steer it elsewhere, and what is given."""
    return {name: value for name, value in os.environ.items() if name not in STEERING} | {**environment}


def _container(entry: Mapping[str, Any]) -> Container:
    labels, state = entry["Config"]["Labels"], entry["State"]
    service, number = labels[f"{LABEL}.service"], labels.get(f"{LABEL}.container-number", "1")
    health = state.get("Health") or {}
    checks = health.get("Log") or [{}]
    return Container(
        name=service if number == "1" else f"{service}-{number}",
        service=service,
        id=entry["Id"],
        state=state["Status"],
        health=health.get("Status", ""),
        said=" ".join(checks[-1].get("Output", "").split())[:200],
        restarts=entry.get("RestartCount", 0),
        started=state["StartedAt"],
        folder=labels.get(f"{LABEL}.project.working_dir", ""),
    )
