"""Secrets from files: the variable X is read from the file that X_FILE names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import SettingsError
from rewardstack_rules.settings import SECRETS


@pytest.mark.parametrize("name", SECRETS)
def test_read(tmp_path: Path, name: str) -> None:
    """The text of the file, without the line's end, is the variable's value; an empty path or file sets nothing."""
    file = tmp_path / "secret"
    file.write_text("first-key-of-tests,second-key-of-tests\n")
    environ = {f"{name}_FILE": str(file), name: ""}
    read_secret_files(SECRETS, environ)
    assert environ == {name: "first-key-of-tests,second-key-of-tests"}
    file.write_text("")
    for path in ("", str(file)):
        environ = {f"{name}_FILE": path}
        read_secret_files(SECRETS, environ)
        assert not environ.get(name)


def test_both(tmp_path: Path) -> None:
    """A variable beside its file is an error that names it and shows neither."""
    file = tmp_path / "secret"
    file.write_text("hunter2")
    environ = {"REWARD_SERVER_API_KEYS_FILE": str(file), "REWARD_SERVER_API_KEYS": "hunter3"}
    with pytest.raises(SettingsError, match="REWARD_SERVER_API_KEYS_FILE are both set") as caught:
        read_secret_files(SECRETS, environ)
    assert "hunter" not in str(caught.value)


def test_missing(tmp_path: Path) -> None:
    """A file that is not there, or is no text, is an error that names the variable; the server is not open instead."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path in (tmp_path / "none", tmp_path, binary):
        with pytest.raises(SettingsError, match=r"REWARD_SERVER_API_KEYS_FILE: .* cannot be read: "):
            read_secret_files(SECRETS, {"REWARD_SERVER_API_KEYS_FILE": str(path)})


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (
            ["-m", "gunicorn", "--check-config", "--config", "python:rewardstack_rules.http.gunicorn_conf"],
            "REWARD_SERVER_API_KEYS_FILE",
        ),
        (["-m", "rewardstack_rules.jobs.worker"], "REWARD_SERVER_API_KEYS_FILE"),
        (["-m", "rewardstack_rules.run_reward_server"], "REWARD_SERVER_API_KEYS_FILE"),
        (["-m", "rewardstack_cli", "check"], "REWARD_SERVER_API_KEYS_FILE"),
    ],
    ids=["gunicorn", "worker", "run_reward_server", "rewardstack"],
)
def test_every_program_reads_them(needs_process: None, command: list[str], name: str) -> None:
    """Each program stops where the file of a secret that it reads is not there, naming the variable."""
    environ = {**os.environ, name: "/nowhere"}
    done = subprocess.run([sys.executable, *command], env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert f"{name}: /nowhere cannot be read" in done.stderr
