"""Reward functions that reach for network, programs or files: the confined ones fail, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack_rules.isolation.confinement import HINT
from tests.rules.conftest import RewardServer, running
from tests.support.isolated import children_of

ATTEMPTS = ("asks", "runs", "writes")
FUNCTIONS = """\
import os, socket, subprocess, tempfile
from rewardstack_rules import reward_function

def asks(response, reference=None):
    socket.socket().close()
    return 1.0

def runs(response, reference=None):
    return float(subprocess.run(["true"]).returncode == 0)

def writes(response, reference=None):
    with tempfile.TemporaryFile(dir=os.path.dirname(__file__)) as file:
        return float(file.write(b"x"))

for function in (asks, runs, writes):
    vars()["open_" + function.__name__] = reward_function(name="open_" + function.__name__)(function)
"""
CONFINED = """\
from rewardstack_rules import reward_function
import attempts

@reward_function(confined=True)
def asks(response, reference=None):
    return attempts.asks(response)

@reward_function(confined=True)
def runs(response, reference=None):
    return attempts.runs(response)

@reward_function(confined=True)
def writes(response, reference=None):
    return attempts.writes(response)
"""


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with functions that try what they should not, confined and not."""
    folder = tmp_path_factory.mktemp("confined")
    (folder / "attempts.py").write_text(FUNCTIONS)
    (folder / "confined.py").write_text(CONFINED)
    files = f"{folder / 'attempts.py'}:{folder / 'confined.py'}"
    with running(folder, "--workers", "1", REWARD_FUNCTIONS=files, VERIFY_PROCESSES=1) as one:
        yield one


def sample(name: str) -> dict[str, Any]:
    """A sample for one of those functions."""
    return {"data_source": f"rule_remote_{name}", "solution_str": "a"}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_confined(server: RewardServer, attempt: str) -> None:
    """A confined function fails its sample, and the reason names what it may not; another one may."""
    confined, unconfined = server.score(sample(attempt), sample(f"open_{attempt}"))

    assert ("failed", True) == (confined["status"], confined["reason"].endswith(HINT)), confined["reason"]
    assert ("ok", 1.0) == (unconfined["status"], unconfined["value"])


def test_built_in(server: RewardServer) -> None:
    """The processes that run built-in functions have the filter, those for open functions have none."""
    filters = [
        line.split()[1]
        for child in children_of(server.url.rpartition(":")[2])
        for line in Path(f"/proc/{child}/status").read_text().splitlines()
        if line.startswith("Seccomp:")
    ]
    assert sorted(filters) == ["0", "2"]
