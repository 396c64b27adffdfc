"""`make images REGISTRY=...`: what an engine is asked to do, and what is said where a registry refuses the image."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewardstack import __version__
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.up.compose.up import registry_host

DOCKER = """#!/bin/sh
echo "$*" >> "{log}"
case "$1 $2" in
    info*) echo '{{"Runtimes": {{}}}}' ;;
    "compose version") echo 2.40.0 ;;
    push*) [ -z "{refuses}" ] || {{ echo "denied: requested access to the resource is denied" >&2; exit 1; }} ;;
esac
"""
"""An engine that says yes: what it is asked stands in a log."""
HOST = "registry.example.com:5000"
IMAGE = f"rewardstack:{__version__}"
NAME = f"{HOST}/team/{IMAGE}"


@dataclass
class Fake:
    """An engine, and what the command said.

    Args:
        folder: of its program.
    """

    folder: Path

    def images(self, registry: str, refuses: bool = False) -> tuple[int, str]:
        """Run the command; its exit status and output."""
        program = self.folder / "docker"
        program.write_text(DOCKER.format(log=self.folder / "log", refuses="yes" if refuses else ""))
        program.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-m", "services.up", "images", "--registry", registry],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "RUN_DIR": str(self.folder / "run")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout

    def asked(self) -> list[str]:
        """Its commands."""
        return (self.folder / "log").read_text().splitlines()


@pytest.fixture
def engine(needs_process: None, tmp_path: Path) -> Fake:
    """A program `docker` of the test's own, for a registry cannot be had."""
    return Fake(tmp_path)


def test_pushed(engine: Fake) -> None:
    """The image is built, given its name in the registry and pushed, and the line for the chart's values is printed."""
    status, said = engine.images(f"{HOST}/team")
    assert (status, engine.asked()[-2:]) == (0, [f"tag {IMAGE} {NAME}", f"push {NAME}"])
    assert any(" build rules" in line for line in engine.asked())
    assert f"  rules: {{image: {NAME}}}\n" in said


def test_refused(engine: Fake) -> None:
    """A registry that does not take it is an error with its own words and the remedy."""
    status, said = engine.images(f"{HOST}/team", refuses=True)
    assert status == 1
    assert "denied: requested access" in said
    assert f"docker login {HOST}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("registry", ["team", "https://registry.example.com", "registry.example.com/Team", "a b", "/x"])
def test_no_registry(registry: str) -> None:
    """What names no host, or is no registry's name, is refused with an example before anything is built."""
    with pytest.raises(StackError, match=r"REGISTRY=(?s:.*): registry.example.com/team"):
        registry_host(registry)
