"""A service starts with its own settings, and without what its last life left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.stack import given, processes
from services.stack.rundir import ROOT, RunDir
from services.up.native import launch

LEAVE_A_CHILD = "import os, time; os.setpgid(0, 0); os.fork() or time.sleep(60)"


ENVIRON = {
    "PATH": "/bin",
    "REWARD_TYPE": "math",
    "REWARD_JOB_RETRIES": "3",
    "REWARD_SERVER_API_KEYS": "k",
    "LLM_JUDGE_SERVER_API_KEY": "j",
    "VLLM_API_KEY": "j",
    "API_KEY": "e",
    "HF_TOKEN": "t",
    "CACHE_PASSWORD": "p",
    "AWS_SECRET_ACCESS_KEY": "a",
}


@pytest.mark.parametrize(
    ("service", "names"),
    [
        ("rules", ["REWARD_TYPE", "REWARD_JOB_RETRIES", "REWARD_SERVER_API_KEYS", "LLM_JUDGE_SERVER_API_KEY"]),
        ("worker-2", ["REWARD_TYPE", "REWARD_JOB_RETRIES", "LLM_JUDGE_SERVER_API_KEY"]),
        ("judge", ["VLLM_API_KEY", "HF_TOKEN"]),
        ("judge-2", ["VLLM_API_KEY", "HF_TOKEN"]),
        ("embedding", ["API_KEY", "HF_TOKEN"]),
        ("cache", []),
        ("queue", []),
        ("gateway", []),
    ],
)
def test_own_settings_only(service: str, names: list[str]) -> None:
    """A service sees the system's variables and its own, not another's and not the user's secrets."""
    assert given.environment(service, ENVIRON) == {name: ENVIRON[name] for name in ["PATH", *names]}


def test_becomes_the_service(tmp_path: Path) -> None:
    """The service finds what is beside its own program first on its PATH, and its old socket is gone."""
    left = RunDir(str(tmp_path)).socket("judge-2")
    left.touch()
    show = [sys.executable, "-c", "import os; print(os.environ['PATH'])"]
    done = subprocess.run(
        [sys.executable, "-m", "services.up.native.launch", "judge-2", *show],
        cwd=ROOT,
        env={"RUN_DIR": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [f"{Path(sys.executable).parent}:/usr/bin"]
    assert not left.exists()


def test_last_group_is_ended(tmp_path: Path) -> None:
    """Children that outlived a killed main process are gone before the service starts anew."""
    run = RunDir(str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", LEAVE_A_CHILD])
    parent.wait()
    (tmp_path / "gateway.group").write_text(str(parent.pid))
    assert len(members(parent.pid)) == 1
    launch.end_last_group("gateway", run)
    wait_until_gone(parent.pid)
    assert (tmp_path / "gateway.group").read_text() == str(os.getpgrp())


def test_other_sessions_are_left_alone(tmp_path: Path) -> None:
    """A group of that number in another session is somebody else's."""
    run = RunDir(str(tmp_path))
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (tmp_path / "gateway.group").write_text(str(stranger.pid))
    launch.end_last_group("gateway", run)
    time.sleep(0.2)
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


def members(group: int) -> list[processes.Process]:
    """The living processes of a group."""
    return [process for process in processes.processes() if process.group == group]


def wait_until_gone(group: int, seconds: float = 5.0) -> None:
    """Returns when a group has no members; fails when it still has some after that time."""
    deadline = time.monotonic() + seconds
    while members(group):
        assert time.monotonic() < deadline
        time.sleep(0.02)
