"""A disk that fills up under queue and run folder in the middle of a job, and has room again later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.jobs.conftest import sample
from tests.native.tree import Tree
from tests.support.disk import Disk
from tests.support.waiting import eventually

SMALL, LARGE = "12m", "64m"
SAMPLES = 600
CHUNK_SIZE = 20
DATA_SOURCES = ("gsm8k", "math", "exact_match")
PATHS = ("/v1/reward_types", "/openapi.json", "/health", "/ready")
REQUESTS = 100
"""Whose lines in the log take more than the last block of any file."""
SECONDS = 180.0
"""What ends again and again is started ever more seldom, at last every half minute."""

A_SLOW_FUNCTION = """
import time
from rewardstack_rules import reward_function

@reward_function
def slow(response, reference=None):
    time.sleep(0.05)
    return float(response == f"#### {reference}")
"""

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("needs_mount"), pytest.mark.timeout(600)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with Disk(folder, SMALL) as made:
        yield made


@pytest.fixture
def stack(disk: Disk, tree: Tree) -> Iterator[Tree]:
    """The native stack, with all that it writes on that disk."""
    functions = tree.path / "slow.py"
    functions.write_text(A_SLOW_FUNCTION)
    tree.environment |= {
        "RUN_DIR": str(disk.path / "run"),
        "REWARD_FUNCTIONS": str(functions),
        "REWARD_JOB_CHUNK_SIZE": str(CHUNK_SIZE),
    }
    up = tree.run("up")
    assert up.returncode == 0, up.stdout
    yield tree
    tree.run("down")


def submit(stack: Tree) -> requests.Response:
    """The answer to a job."""
    items = [sample(at, data_source="rule_remote_slow") for at in range(SAMPLES)]
    return requests.post(f"{stack.url}/jobs", json={"items": items}, timeout=60)


def state(stack: Tree, job_id: str) -> dict[str, Any]:
    """What is told of a job, an error too."""
    found: dict[str, Any] = requests.get(f"{stack.url}/jobs/{job_id}", timeout=60).json()
    return found


def served(stack: Tree, number: int) -> int:
    """The status of a request that has nothing to do with jobs; each kind takes room where requests are counted."""
    half, odd = divmod(number, 2)
    if odd:
        return requests.get(f"{stack.url}{PATHS[half % len(PATHS)]}", timeout=60).status_code
    items = [sample(number, data_source=DATA_SOURCES[half % len(DATA_SOURCES)])]
    return requests.post(f"{stack.url}/v1/score", json={"items": items}, timeout=60).status_code


def finish(stack: Tree, job_id: str) -> None:
    """Wait for a job."""
    eventually(lambda: state(stack, job_id).get("status") == "finished", lambda: f"{state(stack, job_id)}", SECONDS)


def test_filled_and_enlarged(stack: Tree, disk: Disk) -> None:
    """Jobs are refused while it is full; with room again each accepted sample has one result, by nobody's hand."""
    accepted = [submit(stack).json()["job_id"]]
    eventually(lambda: state(stack, accepted[0])["statuses"]["ok"] > CHUNK_SIZE)

    def refused() -> bool:
        disk.fill()  # what ends leaves room
        reply = submit(stack)
        if reply.status_code == 202:
            accepted.append(reply.json()["job_id"])
            return False
        assert (reply.status_code, "whether its disk is full" in reply.json()["error"]) == (503, True), reply.text
        return True

    eventually(refused)
    assert state(stack, accepted[0]).get("status") != "finished"
    told = [requests.get(f"{stack.url}/jobs/{accepted[0]}", timeout=60).status_code for _ in range(REQUESTS)]
    assert {*told} <= {200, 503}
    assert {served(stack, number) for number in range(REQUESTS)} == {200}

    disk.enlarge(LARGE)

    for job_id in accepted:
        finish(stack, job_id)
        lines = requests.get(f"{stack.url}/jobs/{job_id}/results", timeout=60).text.splitlines()
        found = [json.loads(line) for line in lines]
        assert [(one["index"], one["value"]) for one in found] == [(at, float(at % 2 == 0)) for at in range(SAMPLES)]
    eventually(lambda: stack.run("status").returncode == 0, lambda: stack.run("status").stdout, SECONDS)
    assert submit(stack).status_code == 202
