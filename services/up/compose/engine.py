"""The container engine of this machine: whether it answers, and what it can do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from services.stack.errors import StackError

SECONDS = 60
"""That the engine may take to answer a question."""
FIRST_SECONDS = 20
"""And the first one, which finds out whether it answers at all."""
OLDEST_COMPOSE = (2, 24)


@dataclass(frozen=True)
class Engine:
    """A Docker engine that answers, with Compose.

    Args:
        docker: the program.
        gpus: whether containers can be given NVIDIA GPUs.
    """

    docker: str
    gpus: bool


def find() -> tuple[Engine | None, str]:
    """The engine of this machine; where it cannot be used, None and why."""
    docker = shutil.which("docker")
    if not docker:
        return None, "docker is not installed"
    try:
        info = _info(docker)
        version = ask(docker, "compose", "version", "--short")
    except StackError as error:
        return None, error.problem
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_COMPOSE:
        oldest = ".".join(map(str, OLDEST_COMPOSE))
        return None, f"Docker Compose is {version.strip() or 'missing'}, and {oldest} or later is needed"
    return Engine(docker, "nvidia" in (info.get("Runtimes") or {})), ""


def require() -> Engine:
    """The engine of this machine.

    Raises:
        StackError: it cannot be used; says why.
    """
    engine, reason = find()
    if engine is None:
        raise StackError(f"no container engine: {reason}", "start Docker, or STACK=native: local processes")
    return engine


def ask(docker: str, *arguments: str, seconds: float = SECONDS) -> str:
    """What the engine answers to a question, in so many seconds.

    Raises:
        StackError: it does not answer, or refuses; its last line says why.
    """
    try:
        done = subprocess.run(
            # Nothing is read from a directory with a compose file in it.
            [docker, *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise StackError(f"docker {arguments[0]}: no answer in {seconds:g} s") from None
    except OSError as error:
        raise StackError(f"docker {arguments[0]}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise StackError(f"docker {arguments[0]}: {said[-1] if said else 'failed'}")
    return done.stdout


def has_image(engine: Engine, image: str) -> bool:
    """Whether the engine has an image."""
    try:
        ask(engine.docker, "image", "inspect", "--format=.", image)
    except StackError:
        return False
    return True


def _info(docker: str) -> dict[str, Any]:
    info: dict[str, Any] = json.loads(ask(docker, "info", "--format", "{{json .}}", seconds=FIRST_SECONDS))
    if errors := info.get("ServerErrors"):
        raise StackError(f"docker info: {errors[0]}")
    return info
