"""Build the image of reward server and workers, and push it to a registry."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import SECRETS, Settings
from services.up.compose.engine import ask, require
from services.up.compose.project import Project, project_name

REGISTRY = re.compile(r"(?P<host>[a-z0-9][a-z0-9.-]{0,252}(?::\d{1,5})?)(?:/[a-z0-9][a-z0-9._-]{0,127}){0,8}")


def build(project: Project, image: str, files: Sequence[Path], environment: Mapping[str, str] | None = None) -> None:
    """Build the image of reward server and workers. This is fast if nothing has changed.

    Raises:
        StackError: the build fails.
    """
    with step(f"building {image} (the first time takes minutes)", f"{image} built"):
        if not project.run("build", "rules", files=files, environment=environment):
            raise StackError(f"{image} could not be built", "the lines above say why; then make up again")


def make_image(settings: Settings, run: RunDir, registry: str) -> None:
    """Build the image without starting anything. If `registry` is not empty, push the image there.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        registry: registry such as `registry.example.com/team`; empty for none.

    Raises:
        StackError: no engine answers, the build fails, or the registry rejects the image.
    """
    host = registry_host(registry) if registry else ""
    project, image = Project(require(), project_name()), settings["REWARDSTACK_IMAGE"]
    environment = {**settings, **dict.fromkeys(SECRETS, ""), "RUN_DIR": str(run.path)}
    build(project, image, [ROOT / "compose.yaml"], environment)
    if not registry:
        return
    docker, name = project.engine.docker, f"{registry}/{image.rpartition('/')[2]}"
    ask(docker, "tag", image, name)
    with step(f"pushing {name}", f"{name} pushed"):
        if subprocess.run([docker, "push", name], cwd="/", stdin=subprocess.DEVNULL, check=False).returncode != 0:
            raise StackError(
                f"{name} could not be pushed: the lines above say why",
                f"check that this machine can reach {host} and may push to it: docker login {host}",
            )
    say("\nFor the values of helm/rewardstack:\n")
    say(f"  rules: {{image: {name}}}", whole=True)


def registry_host(registry: str) -> str:
    """Return the host of a registry.

    Raises:
        StackError: the text is not a registry, or has no host name, so that the engine would use a public registry.
    """
    found = REGISTRY.fullmatch(registry)
    if not found or not re.search(r"[.:]|^localhost$", found["host"]):
        raise StackError(f"REGISTRY={registry!r} is not a registry", "name its host, too: registry.example.com/team")
    return found["host"]
