"""Find nginx, redis-server and the libraries of vLLM, and install missing ones with apt-get if INSTALL allows it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.stack.console import step
from services.stack.errors import COMMAND, StackError
from services.stack.rundir import ROOT
from services.stack.settings import load

PROGRAMS = ("nginx", "redis-server")
"""Programs that the native stack needs. Their Debian packages have the same names."""

LIBRARIES = {"libnuma.so.1": "libnuma1"}
"""Shared libraries that vLLM loads on a CPU, and their Debian packages."""

SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Folders in which Debian installs nginx. Only root has them on PATH."""

POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_SCRIPT = """#!/bin/sh
# Of rewardstack: no service starts while the process {pid} installs packages.
kill -0 {pid} 2>/dev/null && exit 101
rm -f "$0"
"""
"""Has no effect once the process has ended, even if the process was killed."""


def find() -> dict[str, str]:
    """Return the path of each program that is installed."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    found = {program: shutil.which(program, path=path) for program in PROGRAMS}
    return {program: location for program, location in found.items() if location}


def require() -> dict[str, str]:
    """Install missing programs, and return the path of every program.

    Raises:
        StackError: a program is missing and cannot be installed here.
    """
    install(missing_programs)
    return find()


def missing_programs() -> list[str]:
    """Return the Debian packages of the programs that are not installed."""
    found = find()
    return [program for program in PROGRAMS if program not in found]


def missing_libraries() -> list[str]:
    """Return the Debian packages of the libraries that cannot be loaded."""
    return [package for library, package in LIBRARIES.items() if not _loads(library)]


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def install(missing: Callable[[], list[str]]) -> None:
    """Install missing Debian packages, without starting the services in them.

    Args:
        missing: returns the names of missing packages; called before and after the installation.

    Raises:
        StackError: the packages cannot be installed here, or apt-get failed.
    """
    packages = missing()
    if not packages:
        return
    require_installable(packages)
    names = ", ".join(packages)
    hint = "apt-get; INSTALL=never to do it yourself"
    with step(f"installing {names} ({hint})", f"{names} installed ({hint})"), _prevent_service_starts():
        # Ignore a failed update, because the missing packages may come from the repositories that could be reached.
        _apt_get("update")
        done = _apt_get("install", "-y", "--no-install-recommends", *packages) == 0
    if not done or missing():
        raise StackError(f"apt-get did not install {', '.join(packages)}", _remedy(packages))
    for service in filter(PROGRAMS.__contains__, packages):
        subprocess.run(["update-rc.d", service, "disable"], check=False)


def require_installable(packages: Sequence[str]) -> None:
    """Check that packages can be installed on this machine. Do nothing if the list is empty.

    Raises:
        StackError: INSTALL is `never`, the user is not root, or there is no apt-get.
    """
    if not packages:
        return
    reason = "" if shutil.which("apt-get") else "there is no apt-get here"
    reason = reason or ("" if os.geteuid() == 0 else "only root can install packages")
    if load(ROOT)["INSTALL"] == "never":
        reason = "INSTALL=never"
    if reason:
        raise StackError(f"missing packages: {', '.join(packages)} ({reason})", _remedy(packages))


def _remedy(packages: Sequence[str]) -> str:
    if not shutil.which("apt-get"):
        return f"install {', '.join(packages)} with the package manager of this system, then try again"
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"run this, then try again:{COMMAND}{sudo}apt-get install {' '.join(packages)}"


def _apt_get(*arguments: str) -> int:
    """Run apt-get, showing only its errors, and return its exit status."""
    command = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *arguments]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


@contextmanager
def _prevent_service_starts() -> Iterator[None]:
    """Keep Debian from starting nginx and Redis when it installs them, because they could bind ports of the stack."""
    if POLICY.exists():
        yield
        return
    try:
        POLICY.write_text(POLICY_SCRIPT.format(pid=os.getpid()), encoding="ascii")
        POLICY.chmod(0o755)
        yield
    finally:
        POLICY.unlink(missing_ok=True)
