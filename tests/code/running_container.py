"""Attacks on a reward server in a hardened container: Docker's own seccomp profile, read-only, without privileges.

CODE_IMAGE names the image, by default the one that `make images` builds; the tree is mounted over it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewardstack import __version__

ROOT = Path(__file__).resolve().parents[2]
IMAGE = os.environ.get("CODE_IMAGE", f"rewardstack:{__version__}")
NAME = f"rewardstack-code-{os.getpid()}"
FOLDERS = ("verifier", "client", "cli", "services/rules", ".")
HARDENED = (
    *("--init", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
    *("--network", "none", "--pids-limit", "1024", "--memory", "4g"),
)
SETTINGS = {"CODE": "on", "REWARD_PORT": "6000", "REWARD_WORKERS": "1", "REWARD_CACHE": "off"}


def docker(*arguments: str) -> str:
    """Return what a command of Docker prints."""
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def container(needs_engine: object) -> Iterator[str]:
    """The name of a container whose server runs programs."""
    if not docker("images", "-q", IMAGE).strip():
        pytest.skip(f"there is no image {IMAGE}; make images, or name one in CODE_IMAGE")
    path = ":".join(f"/tree/{folder}" for folder in FOLDERS)
    variables = [f"--env={name}={value}" for name, value in {**SETTINGS, "PYTHONPATH": path}.items()]
    command = ("gunicorn", "--config", "python:rewardstack_rules.http.gunicorn_conf")
    docker("run", "--detach", "--name", NAME, *HARDENED, f"--volume={ROOT}:/tree:ro", *variables, IMAGE, *command)
    try:
        end = time.monotonic() + 120
        while "Running on" not in docker("logs", NAME) + _errors(NAME):
            assert time.monotonic() < end, _errors(NAME)
            time.sleep(0.2)
        yield NAME
    finally:
        docker("rm", "--force", NAME)


def _errors(name: str) -> str:
    return subprocess.run(["docker", "logs", name], check=True, capture_output=True, text=True).stderr


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_attacks(container: str) -> None:
    """Every attack is contained, and every ordinary program works."""
    said = docker("exec", container, "python", "-m", "tests.code.in_container", "http://127.0.0.1:6000", "7")
    assert json.loads(said) == []
