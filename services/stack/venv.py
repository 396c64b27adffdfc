"""Create virtual environments and install packages into them with uv, or with pip if uv fails."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from services.stack import os_errors, space
from services.stack.console import say, step, tail
from services.stack.errors import StackError
from services.stack.processes import defer_signals
from services.stack.rundir import ROOT, require_safe_path
from services.stack.space import GIB

VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / "constraints.txt"
DEV_REQUIREMENTS = ROOT / "tests/requirements.txt"
BYTES, TEMPORARY_BYTES = GIB, GIB // 4
"""Required bytes of disk for `.venv` and for temporary files during installation. With the test tools, `.venv` takes
0.6 GiB."""
DISTRIBUTIONS = ("verifier", "client", "cli", "services/rules")
SOURCES = (CONSTRAINTS, DEV_REQUIREMENTS, *(ROOT / folder / "pyproject.toml" for folder in DISTRIBUTIONS))
TOOLS = ("psutil>=7", "supervisor>=4.3")

REDIRECTIONS = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER")
"""Variables that make pip install into another folder."""
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "trusted-host": "UV_INSECURE_HOST",
    "no-cache-dir": "UV_NO_CACHE",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""Variable of uv for each pip setting that uv supports."""
NOT_FOR_UV = (
    *("disable-pip-version-check", "progress-bar", "no-input", "root-user-action", "retries", "cache-dir"),
    *("prefix", "root", "target", "user"),
)
"""Settings of pip that uv does not need, because they do not affect which packages are installed."""
UV_LIKE_PIP = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true", "UV_COMPILE_BYTECODE": "true"}


def _editable(*packages: str) -> tuple[str, ...]:
    return tuple(word for package in packages for word in ("--editable", package))


RUNTIME = (*_editable("verifier", "client[cache]", "cli", "services/rules[server]"), *TOOLS)
DEVELOPMENT = (
    *_editable("verifier", "client[cache]", "cli[data]", "services/rules[server]"),
    *TOOLS,
    *("--requirement", str(DEV_REQUIREMENTS)),
)


def make(dev: bool = False) -> None:
    """Create or update `.venv`, unless it is up to date.

    Args:
        dev: whether to install the tools for tests and lint, too.

    Raises:
        StackError: the path is unsupported, the disk is full, or the installation failed.
    """
    require_safe_path(ROOT)
    space.require(disk_bytes())
    if _is_moved(VENV):
        with step(f"removing {VENV.name}, which was made for another path", f"{VENV.name} of another path removed"):
            shutil.rmtree(VENV)
    kinds = ("development",) if dev else ("runtime", "development")
    if (VENV / "bin/python").exists() and any(_stamp(kind).exists() for kind in kinds):
        return
    create(VENV)
    with step("installing Python packages", "Python packages installed"):
        install(VENV, "--constraint", str(CONSTRAINTS), *(DEVELOPMENT if dev else RUNTIME))
    _stamp(kinds[0]).touch()


def disk_bytes() -> dict[Path, int]:
    """Return the bytes of disk that creating `.venv` needs, by path; empty if `.venv` exists."""
    return {} if (VENV / "bin/pip").exists() else {VENV: BYTES, Path(tempfile.gettempdir()): TEMPORARY_BYTES}


def create(venv: Path, interpreter: str = sys.executable) -> None:
    """Create a virtual environment, unless a complete one exists.

    Args:
        venv: folder of the environment.
        interpreter: Python interpreter of the environment.

    Raises:
        StackError: the environment could not be created, or its `bin/python` is a broken link. An environment with a
            broken link is not removed, because it may belong to another machine that shares the folder.
    """
    python = venv / "bin/python"
    if python.is_symlink() and not python.exists():
        raise StackError(f"{venv}: its Python does not exist any more", f"rm -r {venv}, then try again")
    # `python -m venv` writes pip last, so an environment without pip is incomplete.
    if not (python.exists() and (venv / "bin/pip").exists()):
        venv.mkdir(parents=True, exist_ok=True)
        for folder in ("bin", "lib"):
            shutil.rmtree(venv / folder, ignore_errors=True)
        name = venv.relative_to(ROOT) if venv.is_relative_to(ROOT) else venv
        with (
            step(f"making {name} with {interpreter}", f"{name} made with {interpreter}"),
            (venv / "install.log").open("w") as log,
        ):
            if not _run([interpreter, "-m", "venv", str(venv)], log):
                raise _failure(venv)


def install(venv: Path, *arguments: str, cache: Path | None = None) -> None:
    """Install packages into a virtual environment with uv, or with pip if uv is unavailable or fails.

    The stamp files of earlier installations (`.installed-…`, see `_stamp`) are removed first.

    Args:
        venv: folder of the environment; the output goes to `install.log` in it.
        arguments: arguments of `pip install`; relative paths start at the root of the tree.
        cache: folder of uv's cache; None for the default.

    Raises:
        StackError: the installation failed; the last lines of its output are printed first.
    """
    unfinished = venv / ".unfinished"
    # After an interruption, uv would regard partially installed packages as installed.
    reinstall = ["--reinstall"] if unfinished.exists() else []
    unfinished.touch()
    for stamp in venv.glob(".installed-*"):
        stamp.unlink()
    python = str(venv / "bin/python")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    uv = [python, "-m", "uv", "pip", "install", "--python", str(venv), *reinstall]
    settings = _uv_settings(python, cache)
    with (venv / "install.log").open("w") as log:
        done = (
            settings is not None
            and _run([*pip, "--retries", "1", "--constraint", str(CONSTRAINTS), "uv"], log)
            and _run([*uv, *arguments], log, settings)
        )
        if not done:
            say("    uv failed; trying pip")
            done = _run([*pip, *arguments], log)
    if not done:
        raise _failure(venv)
    unfinished.unlink()


def _uv_settings(python: str, cache: Path | None) -> dict[str, str] | None:
    """Return environment variables that pass pip's settings to uv; None if uv does not support one of the settings."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    settings = read_pip_settings(listed.stdout)
    if listed.returncode != 0 or settings.keys() - {*UV_VARIABLES, *NOT_FOR_UV}:
        return None
    if "find-links" in settings:
        settings["find-links"] = settings["find-links"].replace(" ", ",")
    translated = {UV_VARIABLES[name]: value for name, value in settings.items() if name in UV_VARIABLES}
    return {**UV_LIKE_PIP, **translated, **({"UV_CACHE_DIR": str(cache)} if cache else {})}


def read_pip_settings(listed: str) -> dict[str, str]:
    """Return the settings of `pip install` by name.

    Args:
        listed: output of `pip config list`: lines such as `global.index-url='…'`. Lines that begin with `install.`
            override those with `global.`, and lines with `:env:.` (environment variables) override both.
    """
    pairs = [line.partition("=") for line in listed.splitlines() if "=" in line]
    rows = [(*key.split(".", 1), " ".join(ast.literal_eval(value).split())) for key, _, value in pairs]
    return {
        name: value for section in ("global", "install", ":env:") for found, name, value in rows if found == section
    }


def _is_moved(venv: Path) -> bool:
    """Return whether an environment has been moved. Its scripts contain the path at which it was created."""
    pip = venv / "bin/pip"
    return pip.exists() and str(venv / "bin") not in pip.read_text(encoding="utf-8", errors="replace")


def _stamp(kind: str) -> Path:
    """Return the file that exists if `.venv` matches the current requirements."""
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update(source.read_bytes())
    digest.update(repr((str(ROOT), RUNTIME, DEVELOPMENT)).encode())
    return VENV / f".installed-{kind}-{digest.hexdigest()[:16]}"


def _run(command: Sequence[str], log: TextIO, variables: Mapping[str, str] | None = None) -> bool:
    """Run a command at the root of the tree, append its output to a log, and return whether it succeeded."""
    environ = {name: value for name, value in os.environ.items() if name not in REDIRECTIONS}
    environ |= {"PIP_USER": "0", **(variables or {})}
    # Ctrl-C also reaches the command. Defer it here, so that the command can clean up.
    with defer_signals():
        return subprocess.run(command, cwd=ROOT, env=environ, stdout=log, stderr=log, check=False).returncode == 0


def _failure(venv: Path) -> StackError:
    """Print the last lines of the installation log, and return the error with its remedy."""
    log = venv / "install.log"
    say(tail(log))
    for folder in (venv, Path(tempfile.gettempdir())):
        if os_errors.is_full(folder):
            return os_errors.disk_full_error(folder)  # on a full disk, the log may lack the cause
    return StackError(
        f"cannot install Python packages into {venv}; the lines above are the last ones of {log}",
        "check that this machine reaches its package index (`python3 -m pip config debug` shows the settings), and that"
        f" no change of constraints.txt conflicts with Python {sys.version_info.major}.{sys.version_info.minor}",
    )
