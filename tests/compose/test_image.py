"""The image of the reward server and its workers."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from rewardstack_rules import __version__
from services.stack.rundir import ROOT
from services.stack.settings import read_dotenv

LIST = """
import importlib.metadata, json
print(json.dumps({found.name: found.version for found in importlib.metadata.distributions()}))
"""
"""Prints the packages that are installed."""

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.nightly]


@pytest.fixture(scope="module")
def image() -> str:
    """Its name, once it is built."""
    name = read_dotenv(ROOT / ".env")["REWARDSTACK_IMAGE"]
    command = ["docker", "compose", "build", "--quiet", "rules"]
    subprocess.run(command, cwd=ROOT, check=True, timeout=280)
    return name


def inside(image: str, *command: str) -> str:
    """What a command prints in a container of it that has no network, no rights and a root it cannot write to."""
    confined = ["--network=none", "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    run = ["docker", "run", "--rm", *confined, image, *command]
    return subprocess.run(run, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


def test_what_it_says_of_itself(image: str) -> None:
    """It has labels with the version of the code, a health check, and a user who is not root."""
    done = subprocess.run(["docker", "image", "inspect", image], capture_output=True, text=True, check=True)
    config: dict[str, Any] = json.loads(done.stdout)[0]["Config"]
    assert config["Labels"]["org.opencontainers.image.version"] == __version__
    assert config["Healthcheck"]["Test"] == ["CMD", "python", "-m", "rewardstack_rules.http.healthcheck"]
    assert config["User"] == "10001:10001"
    assert not [entry for entry in config["Env"] if re.search("KEY|TOKEN|PASSWORD|SECRET", entry)]


def test_what_is_in_it(image: str) -> None:
    """It holds the two packages in the pinned versions, and neither tests, nor settings, nor what builds it."""
    listed = inside(image, "python", "-c", LIST)
    versions = {name.lower().replace("_", "-"): version for name, version in json.loads(listed).items()}
    assert {"rewardstack", "rewardstack-rules", "redis", "rich", "rq"} <= versions.keys()
    assert not {"pip", "setuptools", "hatchling", "pytest"} & versions.keys()
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert versions["rq"] == pinned["rq"] and versions["flask"] == pinned["Flask"]
    assert inside(image, "sh", "-c", "find /opt /srv -name .env -o -name tests") == ""


def test_programs_start(image: str) -> None:
    """gunicorn takes its configuration, and a health check without a server says what is wrong, in one line."""
    inside(image, "gunicorn", "--check-config", "--config", "python:rewardstack_rules.http.gunicorn_conf")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        inside(image, "python", "-m", "rewardstack_rules.http.healthcheck")
    assert caught.value.stderr.strip() == "/health: [Errno 111] Connection refused"
