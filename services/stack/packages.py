"""Finds nginx, redis-server and the libraries of vLLM; on Debian as root, installs what is missing."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.stack.console import step
from services.stack.errors import StackError

PROGRAMS = {"nginx": "nginx", "redis-server": "redis-server"}
"""Program to the Debian package that holds it."""

LIBRARIES = {"libnuma.so.1": "libnuma1"}
"""Shared library that vLLM on a CPU loads, to the Debian package that holds it."""

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
    install(missing_packages)
    return find()


def require_libraries() -> None:
    """See that every library can be loaded; installs what is missing where that is possible.

    Raises:
        StackError: one is missing and cannot be installed; says what to install.
    """
    install(missing_libraries)


def missing_packages() -> list[str]:
    """The Debian packages of the programs that are not there."""
    return sorted({package for program, package in PROGRAMS.items() if program not in find()})


def missing_libraries() -> list[str]:
    """The Debian packages of the libraries that cannot be loaded."""
    return sorted({package for library, package in LIBRARIES.items() if not _loads(library)})


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def install(missing: Callable[[], list[str]]) -> None:
    """Install the Debian packages that are missing, without starting or enabling the services they bring.

    Args:
        missing: names them, and looks anew each time.

    Raises:
        StackError: this is no Debian, the user is not root, or apt-get failed.
    """
    packages = missing()
    if not packages:
        return
    require_right(packages)
    names = " ".join(packages)
    with step(f"installing {names} with apt-get"), _services_stay_off(packages):
        # A repository out of reach matters only if it is the one that holds the packages.
        _apt_get("update")
        if _apt_get("install", "-y", "--no-install-recommends", *packages) != 0 or missing():
            raise StackError(f"apt-get did not install {names}; its messages stand above", _remedy(packages))


def require_right(packages: Sequence[str]) -> None:
    """See that these packages, of which there may be none, can be installed.

    Raises:
        StackError: this is no Debian, or the user is not root.
    """
    names = " ".join(packages)
    if names and not shutil.which("apt-get"):
        raise StackError(f"missing: {names}; there is no apt-get here to install it", _remedy(packages))
    if names and os.geteuid() != 0:
        raise StackError(f"missing: {names}; only root can install it", _remedy(packages))


def _remedy(packages: Sequence[str]) -> str:
    names = " ".join(packages)
    return f"install {names} (Debian: apt-get install {names}; elsewhere with your package manager), then try again"


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
    for package in sorted({*packages} & {*PROGRAMS.values()}):
        subprocess.run(["update-rc.d", package, "disable"], check=False)
