"""Run commands of a Compose project, query its containers, and record the last `make up` in the run directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.up.compose.engine import Engine, ask

NAME = "rewardstack"
"""Default name of the project; COMPOSE_PROJECT_NAME overrides it."""
RECORD = "compose.json"
LABEL = "com.docker.compose.project"
OVERRIDING_VARIABLES = (
    "COMPOSE_ENV_FILES",
    "COMPOSE_FILE",
    "COMPOSE_PATH_SEPARATOR",
    "COMPOSE_PROFILES",
    "COMPOSE_PROJECT_NAME",
)
"""Environment variables that make Compose use other files, profiles or project names than its command line names."""
OUTPUT_CHARACTERS = 200
LOG_LINES = 2000


@dataclass(frozen=True)
class Container:
    """A container as `docker compose ps` lists it. `ports` are published ports of this machine."""

    name: str
    service: str
    id: str
    state: str
    health: str
    status: str
    ports: tuple[int, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether the container runs and its health check, if any, passes."""
        return self.state == "running" and self.health in ("", "healthy")

    @property
    def has_failed(self) -> bool:
        """Whether the container exited or its health check failed. A starting or waiting container has not failed."""
        return self.state in ("exited", "dead", "restarting") or self.health == "unhealthy"


@dataclass(frozen=True)
class ComposeRecord:
    """Record of what `make up` started, saved in the run directory for later commands.

    Args:
        project: name of the Compose project.
        services: names of the services.
        up: whether the project runs; False after `make down`, which keeps volumes until `make clean`.
    """

    project: str
    services: list[str]
    up: bool = True

    def save(self, run: RunDir) -> None:
        """Write the record to the run directory."""
        (run.path / RECORD).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def load(run: RunDir) -> ComposeRecord | None:
        """Return the record of the last start; None if there is none, or if it is malformed.

        Raises:
            OSError: the run directory cannot be read.
        """
        try:
            return ComposeRecord(**json.loads((run.path / RECORD).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None


class Project:
    """A Compose project."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def command(self, *arguments: str, files: Iterable[Path] = ()) -> list[str]:
        """Return a command line of `docker compose` for this project. Later files take precedence."""
        options = [part for file in files for part in ("--file", str(file))]
        return [self.engine.docker, "compose", "--project-name", self.name, *options, *arguments]

    def run(self, *arguments: str, files: Iterable[Path] = (), environment: Mapping[str, str] | None = None) -> bool:
        """Run `docker compose`, show its output to the user, and return whether it succeeded.

        Without a terminal, `up`, `stop`, `down` and `build` show only errors, because Compose would print every state
        change and build step.
        """
        is_piped, is_build = not sys.stdout.isatty(), "build" in arguments
        quiet = ["--progress=quiet"] if is_piped and {"up", "stop", "down"} & {*arguments} else []
        done = subprocess.run(
            self.command(*quiet, *arguments, files=files),
            cwd="/",
            env=compose_environment(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if is_piped and is_build else None,
            stderr=subprocess.STDOUT if is_piped and is_build else None,
            check=False,
        )
        if done.returncode != 0 and done.stdout:
            say(done.stdout.decode(errors="replace"))
        return done.returncode == 0

    def config(self, files: Sequence[Path], environment: Mapping[str, str]) -> dict[str, Any]:
        """Return the configuration that Compose merges from files, with the variables in `environment` filled in.

        Raises:
            StackError: Compose cannot read the files.
        """
        command = self.command("--project-directory", str(ROOT), "config", "--format=json", files=files)
        done = subprocess.run(
            command, env=compose_environment(environment), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise StackError(f"docker compose config: {done.stderr.strip()}", "see docs/settings.md")
        # Compose escapes each $ as $$.
        model: dict[str, Any] = json.loads(done.stdout.replace("$$", "$"))
        return model

    def containers(self) -> list[Container]:
        """Return the containers of the project, regardless of the current settings.

        Raises:
            StackError: the engine does not answer.
        """
        lines = ask(*self.command("ps", "--all", "--format", "json")).splitlines()
        found = [_container(json.loads(line)) for line in lines]
        return sorted(found, key=lambda container: (container.service, len(container.name), container.name))

    def folder(self) -> Path | None:
        """Return the folder of the project's first compose file; None if the engine has no such project."""
        projects = json.loads(ask(*self.command("ls", "--all", "--format", "json")))
        files = next((project["ConfigFiles"] for project in projects if project["Name"] == self.name), "")
        return Path(files.split(",")[0]).parent if files else None

    def volumes(self) -> list[str]:
        """Return the names of the project's volumes."""
        return ask(self.engine.docker, "volume", "ls", "--quiet", f"--filter=label={LABEL}={self.name}").split()

    def log(self, container: Container, since: str) -> str:
        """Return the output of a container since a time in ISO 8601."""
        command = [self.engine.docker, "logs", f"--since={since}", f"--tail={LOG_LINES}", container.id]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        return output.decode(errors="replace")

    def enable_restarts(self, containers: Iterable[Container]) -> None:
        """Let the engine restart containers when they exit and after a reboot, unless they were stopped."""
        if ids := [container.id for container in containers]:
            ask(self.engine.docker, "update", "--restart", "unless-stopped", *ids)

    def problem(self, container: Container) -> str:
        """Return the status of a container and the output of its last health check."""
        state = json.loads(ask(self.engine.docker, "inspect", "--format={{json .State}}", container.id))
        checks = (state.get("Health") or {}).get("Log") or [{}]
        output = " ".join(checks[-1].get("Output", "").split())[:OUTPUT_CHARACTERS]
        return f"{container.status}: {output}" if output and state["Running"] else container.status


def project_name() -> str:
    """Return the name of the stack's Compose project."""
    return os.environ.get("COMPOSE_PROJECT_NAME") or NAME


def require_own(project: Project, run: RunDir) -> None:
    """Check that the project belongs to this checkout and run directory.

    Raises:
        StackError: the project runs from another folder, or another project runs from this run directory.
    """
    folder, last = project.folder(), ComposeRecord.load(run)
    if folder not in (None, ROOT, run.path):
        raise StackError(
            f"the project {project.name} runs already, from {folder}",
            "make down there, or another name here: COMPOSE_PROJECT_NAME=rewardstack-2 make up",
        )
    if last and last.up and last.project != project.name:
        raise StackError(
            f"RUN_DIR: {run.path} is in use by the project {last.project}, so {project.name} cannot run from it",
            f"make down first, or set another RUN_DIR for {project.name}",
        )


def compose_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without `OVERRIDING_VARIABLES`, and with the variables in `environment` added."""
    return {name: value for name, value in os.environ.items() if name not in OVERRIDING_VARIABLES} | {**environment}


def _container(entry: Mapping[str, Any]) -> Container:
    fields = {name.lower(): entry[name] for name in ("Name", "Service", "ID", "State", "Health", "Status")}
    published = {int(binding["PublishedPort"]) for binding in entry["Publishers"] or ()} - {0}
    return Container(**fields, ports=tuple(published))
