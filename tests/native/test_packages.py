"""nginx and redis-server are found, installed, or named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.stack import packages
from services.stack.errors import StackError


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


def test_no_apt_get(bare: Path) -> None:
    """Where there is no apt-get, the error names every missing package and what to run."""
    program(bare, "nginx")
    with pytest.raises(
        StackError, match=r"missing: redis-server; there is no apt-get here(.|\n)*apt-get install redis"
    ):
        packages.require()


def test_not_root(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user is told what root can install; nothing is tried."""
    program(bare, "apt-get", "exit 99")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(StackError, match=r"missing: nginx redis-server; only root can install it"):
        packages.require()


def test_installs_without_starting_services(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While apt-get works, Debian's policy hook refuses to start services; afterwards it is gone and they are off."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    copies = "".join(f"echo >{bare}/{name}; /bin/chmod +x {bare}/{name};" for name in packages.PROGRAMS)
    program(bare, "apt-get", f'case "$*" in *install*) /bin/cp {packages.POLICY} {bare}/policy-seen; {copies} esac')
    program(bare, "update-rc.d", f'echo "$@" >>{bare}/disabled')
    assert packages.require() == {name: str(bare / name) for name in packages.PROGRAMS}
    assert (bare / "policy-seen").read_text() == packages.NO_SERVICES
    assert not packages.POLICY.exists()
    assert (bare / "disabled").read_text() == "nginx disable\nredis-server disable\n"


def test_apt_get_fails(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt-get that installs nothing is an error with a remedy, and its hook is gone."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare, "apt-get", "exit 100")
    with pytest.raises(StackError, match="apt-get did not install nginx redis-server"):
        packages.require()
    assert not packages.POLICY.exists()


def test_library(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that cannot be loaded is named with its package, and installed where that is possible."""
    monkeypatch.setattr(packages, "LIBRARIES", {"libc.so.6": "libc6"})
    packages.require_libraries()
    monkeypatch.setattr(packages, "LIBRARIES", {"libnuma.so.99": "libnuma1"})
    with pytest.raises(StackError, match="missing: libnuma1; there is no apt-get here"):
        packages.require_libraries()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program(bare, "apt-get", f'echo "$@" >>{bare}/asked')
    program(bare, "update-rc.d", f"echo >{bare}/disabled")
    with pytest.raises(StackError, match="apt-get did not install libnuma1"):
        packages.require_libraries()
    assert "install -y --no-install-recommends libnuma1" in (bare / "asked").read_text()
    assert not (bare / "disabled").exists()
