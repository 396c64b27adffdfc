"""What the system refuses is a line that names the path and the remedy, wherever a command ends."""

from __future__ import annotations

import errno
import os
import pwd
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from services.stack import venv
from services.stack.console import exit_status
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from tests.support.disk import Disk

WORDS = [
    (errno.EACCES, "ERROR: {path}: permission denied — chmod u+rwx {folder} {path}\n"),
    (errno.ENOSPC, "ERROR: the disk of {path} is full — make room there (df -h {path}), then try again\n"),
    (errno.EDQUOT, "ERROR: the disk of {path} is full — "),
    (errno.EROFS, "ERROR: {path} is on a file system that cannot be written to — work in a copy of the tree"),
    (errno.EEXIST, "ERROR: {path}: File exists\n"),
]


def said(error: OSError, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that ends in an error, and with status 1."""

    def command() -> None:
        raise error

    assert exit_status(command) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(("number", "line"), WORDS)
def test_words(number: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Permission, room and a disk that is read only each have words of their own; the path is named."""
    path = tmp_path / "file"
    path.touch()
    assert said(OSError(number, os.strerror(number), str(path)), capsys).startswith(
        line.format(path=path, folder=tmp_path)
    )


def test_another_users(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose a path is, or the first folder above it that there is, is said where it is not the user's own."""
    owner = pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "not/there"))
    assert f"; {tmp_path} belongs to {owner} — run this command as {owner}" in said(error, capsys)


def test_a_link_that_leads_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a link the folder that it leads to is looked at, which need not be there."""
    (tmp_path / "link").symlink_to(tmp_path / "not/there")
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "link"))
    assert said(error, capsys).startswith(f"ERROR: {tmp_path}/link: permission denied")


def test_a_full_disk_without_a_path(
    needs_mount: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write does not say where it was: the disk that has no room is found."""
    with Disk(tmp_path, "2m") as disk:
        disk.fill()
        monkeypatch.setenv("RUN_DIR", str(tmp_path))
        assert f"ERROR: the disk of {tmp_path} is full — " in said(OSError(errno.ENOSPC, "No space left"), capsys)


def test_an_environment_on_a_full_disk(needs_mount: None, tmp_path: Path) -> None:
    """Where not even what `python -m venv` says has room, the full disk is named, and no package index."""
    with Disk(tmp_path, "2m") as disk:
        (tmp_path / "venv").mkdir()
        disk.fill()
        with pytest.raises(StackError, match=f"the disk of {tmp_path}/venv is full — make room"):
            venv.create(tmp_path / "venv")


@pytest.mark.usefixtures("needs_process")
def test_what_is_said_has_no_room() -> None:
    """Where the output of a command goes to a full disk, that is the line, and not the disk of the stack."""
    with open("/dev/full", "w") as full:
        done = saying(full)
    assert (done.returncode, done.stderr) == (
        1,
        "ERROR: cannot write the output: No space left on device — free space on its disk, or redirect the output\n",
    )


@pytest.mark.usefixtures("needs_process")
def test_nobody_reads() -> None:
    """A command whose reader has gone, as `| head` does, ends without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        done = saying(closed)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def saying(stdout: IO[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that says something there."""
    command = "from services.stack.console import *; import sys; sys.exit(exit_status(lambda: say('a line')))"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", command],
        cwd=ROOT,
        env=buffered,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("command", ["services.up", "services.stack"])
def test_interrupted_while_it_is_loaded(command: str, tmp_path: Path) -> None:
    """Ctrl-C while a command is still loaded ends it without a word."""
    (tmp_path / "argparse.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", command, "settings"],
        cwd=ROOT,
        env={"PYTHONPATH": f"{tmp_path}:client"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout + done.stderr) == (130, "")
