"""Find the container engine of this machine and query it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass

from services.stack.errors import StackError

ANSWER_SECONDS = 60
FIRST_ANSWER_SECONDS = 20
"""Timeout in seconds of the first command, which checks whether an engine answers."""
OLDEST_COMPOSE = (2, 24)


@dataclass(frozen=True)
class Engine:
    """A running Docker engine with Compose.

    Args:
        docker: path of the `docker` program.
        gpus: whether containers can use NVIDIA GPUs.
    """

    docker: str
    gpus: bool


def find() -> tuple[Engine | None, str]:
    """Return the engine of this machine and an empty string, or None and the reason why there is no usable engine."""
    docker = shutil.which("docker")
    if not docker:
        return None, "docker is not installed"
    try:
        info = json.loads(ask(docker, "info", "--format", "{{json .}}", seconds=FIRST_ANSWER_SECONDS))
        if errors := info.get("ServerErrors"):
            return None, f"docker info: {errors[0]}"
        version = ask(docker, "compose", "version", "--short").strip()
    except StackError as error:
        return None, error.problem
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_COMPOSE:
        oldest = ".".join(map(str, OLDEST_COMPOSE))
        return None, f"Docker Compose is {version or 'missing'}, and {oldest} or later is needed"
    return Engine(docker, "nvidia" in (info.get("Runtimes") or {})), ""


def require() -> Engine:
    """Return the engine of this machine.

    Raises:
        StackError: there is no usable engine; the message has the reason.
    """
    engine, reason = find()
    if engine is None:
        raise StackError(f"no container engine: {reason}", "start Docker, or set STACK=native to run local processes")
    return engine


def ask(docker: str, *arguments: str, seconds: float = ANSWER_SECONDS) -> str:
    """Run a `docker` command, and return its output.

    Raises:
        StackError: the command times out or fails; the message has the last line of its output.
    """
    try:
        # Run in `/`, because Compose might read a compose file in the current directory.
        done = subprocess.run(
            [docker, *arguments], cwd="/", capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise StackError(f"docker {arguments[0]}: no answer in {seconds:g} s") from None
    except OSError as error:
        raise StackError(f"docker {arguments[0]}: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise StackError(f"docker {arguments[0]}: {lines[-1] if lines else 'failed'}")
    return done.stdout


def has_image(engine: Engine, image: str) -> bool:
    """Return whether the engine has an image; False also if the engine does not answer."""
    try:
        ask(engine.docker, "image", "inspect", "--format=.", image)
    except StackError:
        return False
    return True
