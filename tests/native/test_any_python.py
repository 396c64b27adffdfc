"""`make status`, `logs`, `down` and `clean` with any Python: `.venv` is broken, as after Ctrl-C in pip."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack import rundir
from services.stack.rundir import RunDir
from tests.native.test_stack import working_in
from tests.native.tree import Tree
from tests.support.disk import Disk
from tests.support.waiting import eventually

STATUS = {"status": 2, "logs": 2, "down": 0, "clean": 0}
"""Of make; an error of its commands is 2."""


def half_make(tree: Tree) -> None:
    """Give a tree a `.venv` that pip was interrupted in: an interpreter, and no package."""
    python = tree.path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)


def make(tree: Tree, target: str) -> subprocess.CompletedProcess[str]:
    """Type `make TARGET`, to its end; stderr comes with stdout."""
    return subprocess.run(
        ["make", target],
        cwd=tree.path,
        env=tree.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def bare(needs_process: None, tmp_path: Path) -> Iterator[Tree]:
    """A copy of the tree in which nothing was ever started."""
    yield Tree(tmp_path / "tree")


@pytest.mark.parametrize("made", ["half", "never", "its interpreter is gone"])
def test_nothing_runs(bare: Tree, made: str) -> None:
    """Each command ends in a line, without a traceback and without making anything; clean says nothing, and cleans."""
    if made == "half":
        half_make(bare)
    elif made != "never":
        (bare.path / ".venv/bin").mkdir(parents=True)
        (bare.path / ".venv/bin/python").symlink_to("/nowhere/python3")
    said = {target: make(bare, target) for target in STATUS}
    assert {target: done.returncode for target, done in said.items()} == STATUS
    assert "Traceback" not in "".join(done.stdout for done in said.values())
    assert said["status"].stdout.startswith("ERROR: nothing runs here — make up\n")
    assert (said["down"].stdout, said["clean"].stdout) == ("nothing runs here\n", "")
    assert not (bare.path / ".venv").exists() and not (bare.path / ".run").exists()


def test_an_old_python(bare: Tree, tmp_path: Path) -> None:
    """Where `python3` is too old for the code, another Python that there is does it."""
    for name, does in {
        "python3": 'case "$2" in "") exit 0;; *) exit 1; esac',
        "python3.10": f'exec {sys.executable} -S "$@"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    bare.environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    (bare.path / ".run").mkdir()
    said = {target: make(bare, target) for target in STATUS}
    assert {target: done.returncode for target, done in said.items()} == STATUS, said
    assert not (bare.path / ".run").exists()


def test_what_cannot_be_removed(bare: Tree, tmp_path: Path) -> None:
    """Of all that is another's, `make clean` names the first, and the remedy."""
    (tmp_path / "rm").write_text('#!/bin/sh\nfor file in .venv/a .venv/b; do echo "rm: not $file"; done >&2; exit 1\n')
    (tmp_path / "rm").chmod(0o755)
    bare.environment["PATH"] = f"{tmp_path}:{bare.environment['PATH']}"
    done = make(bare, "clean")
    assert done.returncode == 2
    assert done.stdout.startswith("ERROR: rm: not .venv/a — their owner, or root (sudo make clean), ")


@pytest.mark.nightly
def test_stopped_and_cleaned_away(tree: Tree) -> None:
    """A stack that runs is shown by `make status` and `make logs`, stopped by `make down`, removed by `make clean`."""
    assert tree.run("up").returncode == 0
    half_make(tree)
    status, logs = make(tree, "status"), make(tree, "logs")
    assert (status.returncode, logs.returncode) == (0, 0), status.stdout
    rows = [line.split() for line in status.stdout.splitlines()]
    assert [row[0] for row in rows if row[-1] == "ok"] == ["cache", "queue", "rules", "worker", "gateway"]
    assert f"{tree.path}/.run/logs/rules.log <==" in logs.stdout
    down = make(tree, "down")
    assert down.returncode == 0, down.stdout
    eventually(lambda: not working_in(tree), lambda: f"{working_in(tree)} are left")
    assert (tree.path / ".run/queue").exists()
    assert make(tree, "clean").returncode == 0
    assert not (tree.path / ".run").exists()


@pytest.mark.nightly
def test_killed_supervisor(tree: Tree) -> None:
    """What a supervisord that was killed left is ended by `make clean`, without any package."""
    assert tree.run("up").returncode == 0
    os.kill(int((tree.path / ".run/supervisord.pid").read_text()), 9)
    half_make(tree)
    assert working_in(tree) != []
    assert make(tree, "clean").returncode == 0
    # What verifies is in a session of its own, and ends when it hears that the reward server is gone.
    eventually(lambda: not working_in(tree), lambda: f"{working_in(tree)} are left")
    assert not (tree.path / ".run").exists()


def test_full_disk(tree: Tree, needs_mount: None, tmp_path: Path) -> None:
    """`make up` on a full disk names it in a line, and `make clean` cleans it."""
    (tmp_path / "disk").mkdir()
    with Disk(tmp_path / "disk", "2m") as disk:
        disk.fill()
        tree.environment["RUN_DIR"] = f"{disk.path}/run"
        up = tree.run("up")
        assert (up.returncode, "Traceback" in up.stdout) == (1, False)
        assert f"ERROR: the disk of {disk.path}/run" in up.stdout and " is full — make room" in up.stdout
        assert tree.run("clean").returncode == 0
        assert not Path(tree.environment["RUN_DIR"]).exists()


def test_unreadable(tmp_path: Path) -> None:
    """A run directory that cannot be read is no run directory in which nothing runs."""
    run = RunDir(str(tmp_path))
    (tmp_path / "running.json").mkdir()
    with pytest.raises(IsADirectoryError):
        run.load()


@pytest.mark.parametrize("room", [0, -1])
def test_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """They are in the run directory, or outside it if a socket's path would not fit; either way removed with it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(rundir, "MAX_SOCKET_PATH", len(f"{tmp_path}/run/tmp") + rundir.TEMPORARY_NAME + room)
    run = RunDir(str(tmp_path / "run"))
    run.make()
    inside = run.temporary.is_relative_to(run.path)
    (run.temporary / "file").touch()
    run.make()
    assert inside == (room == 0) and (run.path / "tmp/file").exists()
    run.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_the_users(tmp_path: Path) -> None:
    """A link that a user has put in place of a folder is removed, and what it leads to is not."""
    run, logs = RunDir(str(tmp_path / "run")), tmp_path / "logs"
    run.make()
    run.logs.rmdir()
    logs.mkdir()
    run.logs.symlink_to(logs)
    run.remove()
    assert list(tmp_path.iterdir()) == [logs]
