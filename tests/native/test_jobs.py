"""Jobs in the native stack: its queue keeps them over restarts, backups and losses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.native.tree import Tree
from tests.support.snippets import blocks_of
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("needs_stack"), pytest.mark.nightly]

ROWS = 50
SUBMIT_SECONDS = 120


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A running stack with two workers that take few samples at a time; each test leaves it running."""
    tree = Tree(tmp_path_factory.mktemp("jobs") / "tree")
    tree.environment |= {"WORKERS": "2", "REWARD_JOB_CHUNK_SIZE": "7"}
    try:
        result = tree.run("up")
        assert result.returncode == 0, result.stdout
        yield tree
    finally:
        tree.run("down")


def write_rows(file: Path, first: int = 0) -> list[float]:
    """Write rows of which every second one is right; returns their values."""
    numbers = range(first, first + ROWS)
    rows = [{"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": str(at + at % 2)} for at in numbers]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [1.0 - at % 2 for at in numbers]


def submit(stack: Tree, *arguments: str) -> str:
    """What `rewardstack submit` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "rewardstack_cli", "submit", *arguments],
        cwd=stack.path,
        env={**stack.environment, "REWARD_SERVER_URL": stack.url},
        capture_output=True,
        text=True,
        timeout=SUBMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_jobs_outlive_the_stack(stack: Tree, tmp_path: Path) -> None:
    """A job that was taken before `make down` is complete after the next `make up`."""
    write_rows(tmp_path / "in.jsonl", first=1000)
    job = submit(stack, str(tmp_path / "in.jsonl")).split()[-1]
    assert stack.run("down").returncode == 0
    assert (result := stack.run("up")).returncode == 0, result.stdout
    out = tmp_path / "out.jsonl"
    submit(stack, str(tmp_path / "in.jsonl"), "--wait", "-o", str(out))
    assert len(out.read_text().splitlines()) == ROWS
    assert requests.get(f"{stack.url}/jobs/{job}", timeout=60).json()["status"] == "finished"


def test_backup_and_restore(stack: Tree, tmp_path: Path) -> None:
    """By the commands of `docs/operations.md` a queue that is lost is back with its jobs, which end."""
    backup, restore = (text for _, text in blocks_of("docs/operations.md") if ".run/queue" in text)
    write_rows(tmp_path / "in.jsonl", first=2000)
    job = submit(stack, str(tmp_path / "in.jsonl")).split()[-1]
    make = f'make() {{ {sys.executable} -m services.up "$@"; }}\n'
    for commands in (backup, restore):
        done = subprocess.run(
            ["bash", "-euc", make + commands], cwd=stack.path, env=stack.environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done
    eventually(lambda: requests.get(f"{stack.url}/jobs/{job}", timeout=60).json()["status"] == "finished")


def test_clean(tree: Tree) -> None:
    """`make clean` removes what the stack wrote, jobs too, and keeps a file that it did not write."""
    run = tree.path / ".run"
    assert (result := tree.run("up")).returncode == 0, result.stdout
    assert list((run / "queue").rglob("*.aof"))
    (run / "notes.txt").write_text("mine")
    assert tree.run("clean").returncode == 0
    assert [path.name for path in run.iterdir()] == ["notes.txt"]
    (run / "notes.txt").unlink()
    assert tree.run("clean").returncode == 0
    assert not run.exists()
