"""What killed jobs left on shared storage and on a node is known by its name, and cleared where the job is gone."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.stack.rundir import ROOT

pytestmark = pytest.mark.usefixtures("needs_process")

CASES = json.loads((ROOT / "tests/cases/job_leftovers.json").read_text())
USER = pwd.getpwuid(os.geteuid()).pw_name
ANSWERS = "printf '%s\\n' " + " ".join(CASES["live"])
OTHER_UID = 4711


def clear(what: str, folder: Path, squeue: str = ANSWERS, cases: Sequence[Mapping[str, Any]] = ()) -> set[str]:
    """Make what is there, clear it as the second restart of job 5 does, and return what stays."""
    folder.mkdir(exist_ok=True)
    for case in cases or CASES[what]:
        made = folder / named(case)
        made.mkdir()
        if "file" in case:
            (made / case["file"]).touch()
        if case.get("other_user"):
            os.chown(made, OTHER_UID, OTHER_UID)
    programs = folder.with_name("programs")
    programs.mkdir()
    (programs / "squeue").write_text(f"#!/bin/sh\n{squeue}\n")
    (programs / "squeue").chmod(0o755)
    given = {"SLURM_CLUSTER_NAME": "cluster", "SLURM_JOB_ID": "5", "SLURM_RESTART_COUNT": "2"}
    own = {**os.environ, **given, "REWARDSTACK_ROOT": str(ROOT), "PATH": f"{programs}:{os.environ['PATH']}"}
    command = f'set -eu; . apptainer/slurm/leftovers.sh; clear_{what} "$1"'
    subprocess.run(["sh", "-c", command, "sh", str(folder)], cwd=ROOT, env=own, check=True)
    return {one.name for one in folder.iterdir()}


def named(case: Mapping[str, Any]) -> str:
    """The name of what is there, of this user."""
    return str(case["name"]).replace("USER", USER)


@pytest.mark.parametrize("what", ["shared", "node"])
def test_cleared(tmp_path: Path, what: str) -> None:
    """Only this user's finished runs are cleared, according to Slurm's list of jobs; nothing else is."""
    assert clear(what, tmp_path / "there") == {named(case) for case in CASES[what] if case["stays"]}


@pytest.mark.parametrize("squeue", ["exit 1", "exit 0", "echo 6", "echo slurm is away; exit 0"])
@pytest.mark.parametrize("what", ["shared", "node"])
def test_slurm_is_away(tmp_path: Path, what: str, squeue: str) -> None:
    """Where Slurm does not answer, or its list lacks the very job that asks, everything stays."""
    assert clear(what, tmp_path / "there", squeue) == {named(case) for case in CASES[what]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders of others")
@pytest.mark.parametrize(("what", "name"), [("shared", "cluster.7.0"), ("node", "rewardstack-7.0-n1")])
def test_of_another_user(tmp_path: Path, what: str, name: str) -> None:
    """What another user has there stays, whatever it is named."""
    assert clear(what, tmp_path / "there", cases=[{"name": name, "other_user": True}]) == {name}


@pytest.mark.parametrize(("what", "name"), [("shared", "cluster.7.0"), ("node", "rewardstack-7.0-n1")])
def test_link(tmp_path: Path, what: str, name: str) -> None:
    """What a link leads to that has a run's name stays."""
    there, precious = tmp_path / "there", tmp_path / "precious/file"
    for made in (there, precious.parent):
        made.mkdir()
    precious.touch()
    (there / name).symlink_to(precious.parent)
    clear(what, there, cases=[{"name": "none"}])
    assert precious.exists()
