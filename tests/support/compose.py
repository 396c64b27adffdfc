"""Run the stack of `compose.yaml` with its own project name and ports, so that several stacks can run side by side."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from testcontainers.compose import DockerCompose

from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import SETTINGS, load
from services.up.compose import composition, engine
from tests.support.servers import free_port

FILE = ROOT / "compose.yaml"
PORTS = ("REWARD_PORT", "PAGE_PORT", "JUDGE_PORT", "EMBEDDING_PORT")
"""Settings for the ports that the gateway publishes."""
MODELS = ("judge", "embedding")
"""Services that load a model; each has a Compose profile with the same name."""
COMMAND_SECONDS = 900.0
PULL_SECONDS = 30.0
"""Time limit to pull one of the smaller images; on a slower connection, pull the images before you run the tests."""

PASSED_ON = ("BUILD_NETWORK",)
"""Settings that describe this machine rather than the stack."""


def of_this_machine() -> dict[str, str]:
    """Return the settings of `PASSED_ON` that are set in the environment."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


@functools.cache
def missing() -> str:
    """Return why a stack without models cannot run in containers on this machine; empty if it can."""
    found, reason = engine.find()
    if found is None:
        return f"no container engine: {reason}"
    images = _missing_images(found, models=False)
    try:
        # If the first image can be pulled, assume that Compose can pull the others.
        for image in images[:1]:
            engine.ask(found.docker, "pull", "--quiet", image, seconds=PULL_SECONDS)
    except StackError:
        return f"container images are missing and cannot be pulled: {' '.join(images)}"
    return ""


@functools.cache
def missing_models() -> str:
    """Return why a stack with models cannot run in containers on this machine; empty if it can."""
    if lacks := missing():
        return lacks
    found = engine.require()
    images = _missing_images(found, models=True)
    # These images have gigabytes, so no test pulls them.
    return f"container images are missing: {' '.join(images)}" if images else ""


def _missing_images(found: engine.Engine, models: bool) -> list[str]:
    """Return the images of `compose.yaml` that the engine lacks, without those that are built on this machine.

    Args:
        found: the container engine.
        models: whether to return the images of the services that load a model, or those of all other services.
    """
    services = ComposeStack(["*"]).configuration()["services"].items()
    images = {one["image"] for name, one in services if "build" not in one and (name in MODELS) == models}
    return sorted(image for image in images if not engine.has_image(found, image))


class Container(NamedTuple):
    """A container of the stack that a test can kill and start again."""

    name: str

    def kill(self) -> None:
        """Kill it, as in a crash; the engine does not restart it."""
        _docker("kill", "--signal", "KILL", self.name)

    def start(self) -> None:
        """Start it again with the files that it had."""
        _docker("start", self.name)

    def inspect(self) -> dict[str, Any]:
        """Return the output of `docker inspect`."""
        (found,) = json.loads(_docker("inspect", self.name))
        return dict(found)


class ComposeStack:
    """The stack in containers.

    Args:
        profiles: the services of `MODELS` to run.
        settings: settings that override `.env`. Settings in the environment are ignored, except `PASSED_ON`.
    """

    def __init__(self, profiles: Sequence[str] = MODELS, **settings: str) -> None:
        kept = {name: text for name, text in os.environ.items() if name not in SETTINGS} | of_this_machine()
        own = {name: str(free_port()) for name in PORTS}
        own |= {"COMPOSE_PROJECT_NAME": f"rewardstack-{uuid.uuid4().hex[:8]}", "COMPOSE_PROFILES": ",".join(profiles)}
        own |= {f"STACK_{name.upper()}_URL": "" for name in MODELS if name not in profiles}
        self.environment = {**kept, "RUN_DIR": settings.get("RUN_DIR") or self._run_dir(), **own, **settings}
        self._compose = DockerCompose(ROOT, build=True)

    def _run_dir(self) -> str:
        """Return a run directory with generated passwords, which is removed with this object."""
        folder = tempfile.mkdtemp(prefix="rewardstack-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        composition.write_secrets(load(ROOT, {}), RunDir(folder))
        return folder

    def secret(self, name: str) -> str:
        """Return the content of a secret file."""
        return Path(self.environment["RUN_DIR"], "secrets", name).read_text(encoding="utf-8")

    def url(self, port: str) -> str:
        """Return a service's URL at the gateway; `port` is one of `PORTS`."""
        return f"http://127.0.0.1:{self.environment[port]}"

    def start(self) -> None:
        """Start all services and return when they are healthy.

        Raises:
            RuntimeError: a service does not become healthy; the message has the engine's error and the services' logs.
        """
        try:
            with mock.patch.dict(os.environ, self.environment, clear=True):
                self._compose.start()
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace")[-2000:]
            raise RuntimeError(f"{said}\n{self.run('logs', '--tail', '30')}") from error

    def stop(self) -> None:
        """Stop and remove all containers and volumes."""
        with mock.patch.dict(os.environ, self.environment, clear=True):
            self._compose.stop()

    def run(self, *arguments: str) -> str:
        """Run a command of `docker compose` and return its standard output.

        Raises:
            RuntimeError: the command failed; the message has its standard error.
        """
        return _run([*self._compose.docker_compose_command(), *arguments], self.environment)

    def containers(self, service: str) -> list[Container]:
        """Return the running containers of a service, sorted by their numbers."""
        names = self.run("ps", "--format", "{{.Name}}", service).split()
        return [Container(name) for name in sorted(names, key=lambda name: (len(name), name))]

    def configuration(self) -> dict[str, Any]:
        """Return the content of `compose.yaml` with all settings filled in."""
        found: dict[str, Any] = json.loads(self.run("config", "--format", "json"))
        return found


@contextmanager
def running(profiles: Sequence[str] = MODELS, **settings: str) -> Iterator[ComposeStack]:
    """Yield a healthy stack and remove it afterwards.

    Args:
        profiles: the services of `MODELS` to run.
        settings: settings that override `.env`.
    """
    stack = ComposeStack(profiles, **settings)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def _docker(*arguments: str) -> str:
    return _run(["docker", *arguments], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout
