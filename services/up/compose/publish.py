"""`make images REGISTRY=...`: the image of reward server and workers in a registry, from which clusters fetch it."""

from __future__ import annotations

import re
import subprocess

from services.stack.console import say, step
from services.stack.errors import StackError
from services.up.compose.engine import Engine, ask

REGISTRY = re.compile(r"(?P<host>[a-z0-9][a-z0-9.-]{0,252}(?::\d{1,5})?)(?:/[a-z0-9][a-z0-9._-]{0,127}){0,8}")


def host_of(registry: str) -> str:
    """The host of a registry.

    Args:
        registry: such as `registry.example.com/team`.

    Raises:
        StackError: it is none, or names no host, which an engine would take for a public one's.
    """
    found = REGISTRY.fullmatch(registry)
    if not found or not re.search(r"[.:]|^localhost$", found["host"]):
        raise StackError(f"REGISTRY={registry!r} is no registry", "name its host first: registry.example.com/team")
    return found["host"]


def publish(engine: Engine, image: str, registry: str) -> None:
    """Give an image its name in a registry, push it there, and say how a chart's values name it.

    Args:
        engine: that has the image.
        image: such as `rewardstack:0.1.0`.
        registry: such as `registry.example.com/team`.

    Raises:
        StackError: the registry is none, or does not take it.
    """
    host = host_of(registry)
    name = f"{registry}/{image.rpartition('/')[2]}"
    ask(engine.docker, "tag", image, name)
    with step(f"pushing {name}"):
        pushed = subprocess.run([engine.docker, "push", name], cwd="/", stdin=subprocess.DEVNULL, check=False)
        if pushed.returncode != 0:
            raise StackError(
                f"{name} could not be pushed: the lines above say why",
                f"see that this machine reaches {host}, and that it may write there: docker login {host}",
            )
    say("\nFor the values of helm/rewardstack:\n")
    say(f"  rules: {{image: {name}}}", whole=True)
