"""The stack of `compose.yaml` under a name and ports of its own, so that it never meets one that runs beside it."""

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
"""The settings of the ports that the gateway publishes."""
MODELS = ("judge", "embedding")
"""The services that load a model, each with a profile of its name."""
COMMAND_SECONDS = 900.0
PULL_SECONDS = 30.0
"""For one of the smaller images; a machine that takes longer should pull them before it runs tests."""

PASSED_ON = ("BUILD_NETWORK",)
"""The settings that say something of this machine, not of the stack."""


def of_this_machine() -> dict[str, str]:
    """Those of `PASSED_ON` that the environment has."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


@functools.cache
def missing() -> str:
    """Return why no stack without models can run in containers here; empty if one can."""
    found, reason = engine.find()
    if found is None:
        return f"no container engine: {reason}"
    images = _missing_images(found, models=False)
    try:
        # If the first one can be pulled, so can the others: Compose does that.
        for image in images[:1]:
            engine.ask(found.docker, "pull", "--quiet", image, seconds=PULL_SECONDS)
    except StackError:
        return f"container images are missing and cannot be pulled: {' '.join(images)}"
    return ""


@functools.cache
def missing_models() -> str:
    """Return why no stack with models can run in containers here; empty if one can."""
    if lacks := missing():
        return lacks
    found = engine.require()
    images = _missing_images(found, models=True)
    # Some gigabytes, which no test pulls.
    return f"container images are missing: {' '.join(images)}" if images else ""


def _missing_images(found: engine.Engine, models: bool) -> list[str]:
    """Return the images of `compose.yaml` that the engine lacks, of the services that load a model or of the others.

    An image that is built here does not count; the one that it is built from does.
    """
    services = ComposeStack(["*"]).configuration()["services"].items()
    images = {one["image"] for name, one in services if "build" not in one and (name in MODELS) == models}
    return sorted(image for image in images if not engine.has_image(found, image))


class Container(NamedTuple):
    """One container of the stack, to be killed and started again."""

    name: str

    def kill(self) -> None:
        """It is gone at once, as after a crash; the engine does not start it again by itself."""
        _docker("kill", "--signal", "KILL", self.name)

    def start(self) -> None:
        """It runs again, with the files it had."""
        _docker("start", self.name)

    def inspect(self) -> dict[str, Any]:
        """All that the engine knows of it."""
        (found,) = json.loads(_docker("inspect", self.name))
        return dict(found)


class ComposeStack:
    """The stack in containers.

    Args:
        profiles: of the services that load a model.
        settings: that beat `.env`; of the developer's own only `PASSED_ON` count.
    """

    def __init__(self, profiles: Sequence[str] = MODELS, **settings: str) -> None:
        kept = {name: text for name, text in os.environ.items() if name not in SETTINGS} | of_this_machine()
        own = {name: str(free_port()) for name in PORTS}
        own |= {"COMPOSE_PROJECT_NAME": f"rewardstack-{uuid.uuid4().hex[:8]}", "COMPOSE_PROFILES": ",".join(profiles)}
        own |= {f"STACK_{name.upper()}_URL": "" for name in MODELS if name not in profiles}
        self.environment = {**kept, "RUN_DIR": settings.get("RUN_DIR") or self._run_dir(), **own, **settings}
        self._compose = DockerCompose(ROOT, build=True)

    def _run_dir(self) -> str:
        """Return a run directory with generated passwords, which goes with this object."""
        folder = tempfile.mkdtemp(prefix="rewardstack-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        composition.write_secrets(load(ROOT, {}), RunDir(folder))
        return folder

    def secret(self, name: str) -> str:
        """Return the content of a secret file."""
        return Path(self.environment["RUN_DIR"], "secrets", name).read_text(encoding="utf-8")

    def url(self, port: str) -> str:
        """Of a service at the gateway, by the setting of its port."""
        return f"http://127.0.0.1:{self.environment[port]}"

    def start(self) -> None:
        """Starts every service, and returns when all are well.

        Raises:
            RuntimeError: one does not become well; with what the engine and the services said.
        """
        try:
            with mock.patch.dict(os.environ, self.environment, clear=True):
                self._compose.start()
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace")[-2000:]
            raise RuntimeError(f"{said}\n{self.run('logs', '--tail', '30')}") from error

    def stop(self) -> None:
        """Stops and removes everything, volumes as well."""
        with mock.patch.dict(os.environ, self.environment, clear=True):
            self._compose.stop()

    def run(self, *arguments: str) -> str:
        """What a command of `docker compose` prints.

        Raises:
            RuntimeError: it failed; with what it said.
        """
        return _run([*self._compose.docker_compose_command(), *arguments], self.environment)

    def containers(self, service: str) -> list[Container]:
        """The running containers of a service, in the order of their numbers."""
        names = self.run("ps", "--format", "{{.Name}}", service).split()
        return [Container(name) for name in sorted(names, key=lambda name: (len(name), name))]

    def configuration(self) -> dict[str, Any]:
        """The file as the engine reads it, with all settings filled in."""
        found: dict[str, Any] = json.loads(self.run("config", "--format", "json"))
        return found


@contextmanager
def running(profiles: Sequence[str] = MODELS, **settings: str) -> Iterator[ComposeStack]:
    """A healthy stack, which is removed afterwards.

    Args:
        profiles: of the services that load a model.
        settings: that beat `.env`.
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
