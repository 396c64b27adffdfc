"""nginx and redis-server are found, installed, or named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from services.stack import packages
from services.stack.errors import StackError
from tests.support.table import Table


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program: what is put into this directory is all there is."""
    monkeypatch.setattr(packages, "SYSTEM_DIRECTORIES", ())
    monkeypatch.setattr(packages, "POLICY", tmp_path / "policy-rc.d")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(directory: Path, name: str, script: str = "") -> None:
    """Put a program there."""
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is root."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_what_cannot_be_installed(bare: Path, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """Without apt-get, without root or with INSTALL=never, nothing is run and the error names the command."""
    missing = "missing packages: nginx, redis-server"
    by_root = "run this, then try again:\n      apt-get install nginx redis-server"
    by_user = by_root.replace("apt-get", "sudo apt-get")
    rows = [
        ("no apt-get", 0, "auto", "there is no apt-get here", "install nginx, redis-server with the package manager"),
        ("no root", 1000, "auto", "only root can install packages", by_user),
        ("never", 0, "never", "INSTALL=never", by_root),
        ("never, no root", 1000, "never", "INSTALL=never", by_user),
    ]
    for name, user, setting, reason, remedy in rows:
        with table.case(name):
            if name != "no apt-get":
                program(bare, "apt-get", "exit 99")
            monkeypatch.setattr(os, "geteuid", lambda user=user: user)
            monkeypatch.setenv("INSTALL", setting)
            with pytest.raises(StackError) as error:
                packages.require()
            assert str(error.value).startswith(f"{missing} ({reason}) — {remedy}")


@pytest.mark.usefixtures("root")
def test_installs_without_starting_services(bare: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A line says what is installed; Debian's policy hook keeps it from being started, then and at the next boot."""
    copies = "".join(f"echo >{bare}/{name}; /bin/chmod +x {bare}/{name};" for name in packages.PROGRAMS)
    program(bare, "apt-get", f'case "$*" in *install*) {packages.POLICY}; echo $? >{bare}/policy; {copies} esac')
    program(bare, "update-rc.d", f'echo "$@" >>{bare}/disabled')
    assert packages.require() == {name: str(bare / name) for name in packages.PROGRAMS}
    line = "✓ nginx, redis-server installed (apt-get; INSTALL=never to do it yourself)"
    assert capfd.readouterr().out.startswith(line)
    assert (bare / "policy").read_text() == "101\n"
    assert not packages.POLICY.exists()
    assert (bare / "disabled").read_text() == "nginx disable\nredis-server disable\n"


@pytest.mark.usefixtures("root")
def test_a_policy_of_the_machine(bare: Path) -> None:
    """A policy hook that is there stays as it is."""
    packages.POLICY.write_text("theirs")
    program(bare, "apt-get", "exit 100")
    with pytest.raises(StackError):
        packages.require()
    assert packages.POLICY.read_text() == "theirs"


@pytest.mark.usefixtures("root")
def test_apt_get_fails(bare: Path) -> None:
    """An apt-get that installs nothing is an error with a remedy, and the policy hook is removed."""
    program(bare, "apt-get", "exit 100")
    with pytest.raises(StackError, match=r"apt-get did not install nginx, redis-server — run this"):
        packages.require()
    assert not packages.POLICY.exists()


@pytest.mark.usefixtures("root")
def test_library(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of a library that cannot be loaded is installed, and no service is disabled."""
    monkeypatch.setattr(packages, "LIBRARIES", {"libc.so.6": "libc6"})
    packages.install(packages.missing_libraries)
    monkeypatch.setattr(packages, "LIBRARIES", {"libnuma.so.99": "libnuma1"})
    program(bare, "apt-get", f'echo "$@" >>{bare}/asked')
    program(bare, "update-rc.d", f"echo >{bare}/disabled")
    with pytest.raises(StackError, match="apt-get did not install libnuma1"):
        packages.install(packages.missing_libraries)
    assert "install -y --no-install-recommends libnuma1" in (bare / "asked").read_text()
    assert not (bare / "disabled").exists()


def test_a_policy_that_was_left_behind(bare: Path) -> None:
    """The policy hook of an installation that was killed lets services start, and removes itself."""
    (ended := subprocess.Popen(["/bin/true"])).wait()
    program(bare, "policy-rc.d", packages.POLICY_SCRIPT.format(pid=ended.pid).partition("\n")[2])
    done = subprocess.run([packages.POLICY, "nginx", "start"], env={"PATH": "/usr/bin:/bin"}, check=False)
    assert (done.returncode, packages.POLICY.exists()) == (0, False)
