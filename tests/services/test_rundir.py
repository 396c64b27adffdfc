"""A run directory takes nothing from, and puts nothing into, a folder of somebody else's."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.rundir import MARKS, RunDir, Running, boot_id


def test_a_folder_of_others(tmp_path: Path) -> None:
    """One that holds files, and no stack made, is refused before anything is written, by every command."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/mine.txt").touch()
    run = RunDir(str(tmp_path))
    with pytest.raises(StackError, match="RUN_DIR: .* contains files that no stack has created"):
        run.make()
    with pytest.raises(StackError, match="contains files that no stack has created"), run.lock():
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["logs", "mine.txt"]


@pytest.mark.parametrize("mark", MARKS)
def test_a_folder_of_a_stack(tmp_path: Path, mark: str) -> None:
    """One that a stack made, also of an earlier version, is taken again."""
    (tmp_path / mark).touch()
    RunDir(str(tmp_path)).make()


def test_what_is_left(tmp_path: Path) -> None:
    """A directory that was made is removed without a trace, and one that others put something into keeps that."""
    run = RunDir(str(tmp_path / "run"))
    for others in (False, True):
        run.make()
        if others:
            (run.path / "mine.txt").touch()
        run.remove()
        assert [path.name for path in tmp_path.rglob("*")] == (["run", "mine.txt"] if others else [])


@pytest.mark.parametrize(("path", "why"), [("~/run", "only a shell expands"), (__file__, "is not a folder")])
def test_no_folder(path: str, why: str) -> None:
    """A file, and a path that a shell would have read otherwise, are refused by the setting's name."""
    with pytest.raises(StackError, match=f"RUN_DIR: .*{why}"):
        RunDir(path).make()


def test_a_folder_that_others_may_write_into(tmp_path: Path) -> None:
    """What is in a folder into which others may write is not read, and nothing of it run; an empty one is taken."""
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    RunDir(str(folder)).make()
    folder.chmod(0o777)
    with pytest.raises(StackError, match="others may write into .* — chmod 700"):
        RunDir(str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user, which takes root")
def test_a_folder_of_another_user(tmp_path: Path) -> None:
    """A folder that another user has made, as in /tmp anybody can, is not believed."""
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    with pytest.raises(StackError, match="belongs to user 65534, not to you"):
        RunDir(str(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user, which takes root")
def test_a_link_of_another_user(tmp_path: Path) -> None:
    """Nor is a link that another user has put in its place, wherever that leads."""
    (tmp_path / "mine").mkdir(mode=0o700)
    link = tmp_path / "run"
    link.symlink_to("mine")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(StackError, match="belongs to user 65534, not to you"):
        RunDir(str(link))


def test_an_interrupted_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If saving is interrupted after the file was opened, the state before stays, so that the stack can be stopped."""
    run = RunDir(str(tmp_path))
    before = Running(1, boot_id(), "", "127.0.0.1", ports={}, services=[])
    run.save(before)

    def interrupt(path: Path, *_: object, **__: object) -> int:
        path.open("w").close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.save(replace(before, session=2))
    assert run.load() == before
