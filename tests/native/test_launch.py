"""A service starts with its own settings, and without what its last life left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from services.stack import processes
from services.stack.rundir import ROOT, RunDir
from services.up.native.programs import Program

LEAVE_A_CHILD = "import os, time; os.setpgid(0, 0); os.fork() or time.sleep(3600)"
SHOW = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path))
    made.make()
    return made


def launched(run: RunDir, program: Program) -> dict[str, Any]:
    """What a program that shows its environment was given."""
    run.program(program.name).write_text(json.dumps(program.description))
    done = subprocess.run(
        [sys.executable, "-m", "services.up.native.launch", str(run.program(program.name))],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "CACHE_PASSWORD": "p", "AWS_SECRET_ACCESS_KEY": "a", "DIGEST": "d"},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_becomes_the_service(run: RunDir) -> None:
    """It is given its own variables and the system's, what is beside it first on its PATH; its old socket is gone."""
    run.socket("judge-2").touch()
    given = launched(run, Program("judge-2", SHOW, 20, environment={"OWN": "1"}))
    assert given["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert {name for name in given if name not in ("LC_CTYPE", "PWD", "SHLVL", "_")} == {"PATH", "OWN"}
    assert not run.socket("judge-2").exists()


def test_keys_come_from_files(run: RunDir, tmp_path: Path) -> None:
    """A key that a program takes from its environment alone is read from its file, an empty one sets nothing."""
    (tmp_path / "key").write_text("sesame")
    (tmp_path / "none").touch()
    given = launched(run, Program("judge", SHOW, 20, keys={"API_KEY": tmp_path / "key", "NONE": tmp_path / "none"}))
    assert (given["API_KEY"], "NONE" in given) == ("sesame", False)


def test_prefix(run: RunDir) -> None:
    """A prefix command starts the program, and the environment reaches the program through it."""
    prefix = ["env", "INSIDE=yes"]
    given = launched(run, Program("judge", SHOW, 20, environment={"OWN": "1"}, prefix=prefix))
    assert (given["INSIDE"], given["OWN"]) == ("yes", "1")


def test_last_group_is_ended(needs_process: None) -> None:
    """Children that outlive a killed main process are ended before the service restarts."""
    parent = subprocess.Popen([sys.executable, "-c", LEAVE_A_CHILD])
    parent.wait()
    assert len(processes.members(os.getsid(0), parent.pid)) == 1
    processes.end_group(parent.pid, os.getsid(0))
    assert processes.members(os.getsid(0), parent.pid) == []


def test_other_sessions_are_left_alone(needs_process: None) -> None:
    """A group of that number in another session belongs to an unrelated process."""
    unrelated = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    processes.end_group(unrelated.pid, os.getsid(0))
    time.sleep(0.2)
    assert unrelated.poll() is None
    unrelated.kill()
    unrelated.wait()
