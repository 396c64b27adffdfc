"""`apptainer/stack.sh` finds the run directory, and has the stack's own commands do the rest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from services.stack.rundir import ROOT
from tests.native.tree import Tree

pytestmark = pytest.mark.usefixtures("needs_process")

USER = "test-7f3a91c2"
SCRIPT = ROOT / "apptainer/stack.sh"
ABOUT = ("RUN_DIR", "SLURM_JOB_ID", "SLURM_TMPDIR", "TMPDIR")


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of whom this machine has no run directory: `id` says that name."""
    program = tmp_path / "bin/id"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {USER}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A copy of the tree, in which nothing is started."""
    return Tree(tmp_path / "tree")


def said(*arguments: str, folder: Path = ROOT, script: Path = SCRIPT, **environment: str) -> tuple[int, str]:
    """Exit status and words of a call."""
    given = {name: value for name, value in os.environ.items() if name not in ABOUT} | environment
    done = subprocess.run([script, *arguments], cwd=folder, env=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, f"/tmp/rewardstack-{USER}"),
        ({"TMPDIR": "/var/tmp"}, f"/var/tmp/rewardstack-{USER}"),
        ({"TMPDIR": "/var/tmp", "SLURM_TMPDIR": "/tmp/job", "SLURM_JOB_ID": "77"}, f"/tmp/job/rewardstack-{USER}-77"),
        ({"TMPDIR": "/tmp/" + "long/" * 12, "SLURM_JOB_ID": "77"}, f"/tmp/rewardstack-{USER}-77"),
        ({"RUN_DIR": f"/tmp/{USER}", "SLURM_JOB_ID": "77"}, f"/tmp/{USER}"),
    ],
)
def test_run_directory(environment: dict[str, str], expected: str) -> None:
    """It is a short folder of the node, the job's own where there is one, and not in the home."""
    assert said("env", folder=ROOT, script=SCRIPT, **environment) == (
        1,
        f"ERROR: no stack is up in {expected} — apptainer/stack.sh up\n",
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [(f"RUN_DIR=/var/tmp/{USER}  # on the node's disk", f"/var/tmp/{USER}"),
     (f"RUN_DIR='/var/tmp/{USER}'", f"/var/tmp/{USER}"),
     ("RUN_DIR=.run", f"/tmp/rewardstack-{USER}"), ("RUN_DIR=", f"/tmp/rewardstack-{USER}")],
)  # fmt: skip
def test_run_directory_of_the_file(tree: Tree, line: str, expected: str) -> None:
    """RUN_DIR of .env holds here, too; not its default, a folder of the tree, which nodes may share."""
    written = (tree.path / ".env").read_text()
    (tree.path / ".env").write_text(re.sub("^RUN_DIR=.*", line, written, flags=re.MULTILINE))
    (tree.path / "apptainer").mkdir()
    shutil.copy(SCRIPT, tree.path / "apptainer")
    assert f"no stack is up in {expected} — " in said("env", script=tree.path / "apptainer/stack.sh")[1]
    given = said("env", script=tree.path / "apptainer/stack.sh", RUN_DIR=f"/tmp/{USER}")
    assert f"no stack is up in /tmp/{USER} — " in given[1]


def test_run_option(tmp_path_factory: pytest.TempPathFactory) -> None:
    """--run is meant from where it is typed, and beats RUN_DIR."""
    folder = tmp_path_factory.mktemp("here")
    status, words = said("env", "--run", "own", folder=folder, RUN_DIR=f"/tmp/{USER}")
    assert (status, f"no stack is up in {folder}/own — " in words) == (1, True)


@pytest.mark.parametrize("arguments", [["upp"], ["up", "--frre-ports"], []])
def test_mistyped(arguments: list[str]) -> None:
    """A command or an option that there is not is refused, with those that there are."""
    status, words = said(*arguments)
    assert (status, "ERROR: unknown " in words, " — " in words) == (1, True, True)


def test_pythonpath(tmp_path: Path) -> None:
    """What the shell's PYTHONPATH names reaches no Python of the stack's."""
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(77)\n")
    status, words = said("env", PYTHONPATH=str(tmp_path))
    assert (status, "no stack is up" in words) == (1, True)
