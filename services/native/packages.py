"""Finds nginx and redis-server; on Debian as root, installs the one that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.native.console import step
from services.native.errors import StackError

PROGRAMS = {"nginx": "nginx", "redis-server": "redis-server"}
"""Program to the Debian package that holds it."""

SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where Debian keeps nginx; only root has these on its PATH."""

POLICY = Path("/usr/sbin/policy-rc.d")
NO_SERVICES = "#!/bin/sh\nexit 101\n"


def find() -> dict[str, str]:
    """The path of each program that is there."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    found = {program: shutil.which(program, path=path) for program in PROGRAMS}
    return {program: where for program, where in found.items() if where}


def require() -> dict[str, str]:
    """The path of every program; installs what is missing where that is possible.

    Raises:
        StackError: one is missing and cannot be installed; says what to install.
    """
    if missing := missing_packages():
        install(missing)
    return find()


def missing_packages() -> list[str]:
    """The Debian packages of the programs that are not there."""
    return sorted({package for program, package in PROGRAMS.items() if program not in find()})


def install(packages: list[str]) -> None:
    """Install Debian packages, without starting or enabling the services they bring.

    Raises:
        StackError: this is no Debian, the user is not root, or apt-get failed.
    """
    names = " ".join(packages)
    remedy = f"install {names} (Debian: apt-get install {names}; elsewhere with your package manager), then try again"
    if not shutil.which("apt-get"):
        raise StackError(f"missing: {names}; there is no apt-get here to install it", remedy)
    if os.geteuid() != 0:
        raise StackError(f"missing: {names}; only root can install it", remedy)
    with step(f"installing {names} with apt-get"), _services_stay_off(packages):
        # A repository out of reach matters only if it is the one that holds the packages.
        _apt_get("update")
        if _apt_get("install", "-y", "--no-install-recommends", *packages) != 0 or missing_packages():
            raise StackError(f"apt-get did not install {names}; its messages stand above", remedy)


def _apt_get(*arguments: str) -> int:
    """Errors are shown, the rest of what apt-get and dpkg say is not."""
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


@contextmanager
def _services_stay_off(packages: list[str]) -> Iterator[None]:
    """Debian starts and enables a service when its package is installed: it would take the stack's own ports."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text(NO_SERVICES, encoding="ascii")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()
    for package in packages:
        subprocess.run(["update-rc.d", package, "disable"], check=False)
