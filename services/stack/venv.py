"""Makes `.venv` at the root, with the project's own packages in it and every version as in `constraints.txt`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from services.stack import os_errors, pip_errors, space
from services.stack.console import say, step, tail
from services.stack.errors import StackError
from services.stack.rundir import ROOT, require_plain
from services.stack.signals import defer_signals
from services.stack.space import GIB

VENV = ROOT / ".venv"
ELSEWHERE = ("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET")
"""Variables that would have pip install into another place."""
CONSTRAINTS = ROOT / "constraints.txt"
DEV_REQUIREMENTS = ROOT / "tests/requirements.txt"
BYTES, TEMPORARY_BYTES = GIB, GIB // 4
"""Of packages in place, with the tools of the tests 0.6 GiB, and as they come."""
DISTRIBUTIONS = ("verifier", "client", "cli", "services/rules")
SOURCES = (CONSTRAINTS, DEV_REQUIREMENTS, *(ROOT / folder / "pyproject.toml" for folder in DISTRIBUTIONS))

REST = ("psutil>=7", "supervisor>=4.3")


def _editable(*packages: str) -> tuple[str, ...]:
    return tuple(word for package in packages for word in ("--editable", package))


RUNTIME = (*_editable("verifier", "client[cache]", "cli", "services/rules[server]"), *REST)
DEVELOPMENT = (
    *_editable("verifier", "client[cache]", "cli[data]", "services/rules[server]"),
    *REST,
    *("--requirement", str(DEV_REQUIREMENTS)),
)


def make(dev: bool = False) -> None:
    """Bring `.venv` up to date; does nothing where it is.

    Args:
        dev: with the tools of the tests and the lint as well.

    Raises:
        StackError: it could not be made here, or a package not installed; the message ends with what pip said.
    """
    require_plain(ROOT)
    space.require(needs())
    kind = "development" if dev else "runtime"
    if (VENV / "bin/python").exists() and (_stamp("development").exists() or (not dev and _stamp("runtime").exists())):
        return
    create(VENV)
    with step("installing Python packages (the first time takes a few minutes)"):
        pip_install(VENV, "--constraint", str(CONSTRAINTS), *(DEVELOPMENT if dev else RUNTIME))
    _stamp(kind).touch()


def needs() -> dict[Path, int]:
    """Bytes by path that making `.venv` takes; none where it is."""
    return {} if (VENV / "bin/pip").exists() else {VENV: BYTES, Path(tempfile.gettempdir()): TEMPORARY_BYTES}


def create(venv: Path, interpreter: str = sys.executable) -> None:
    """Make a virtual environment where none is.

    Args:
        venv: where it is to be.
        interpreter: whose it is; by default the one that runs this.

    Raises:
        StackError: it could not be made; what was said is printed first. Or its interpreter is gone: it may be another
            machine's, which shares the folder, so it is not removed here.
    """
    python = venv / "bin/python"
    if python.is_symlink() and not python.exists():
        raise StackError(f"{venv}: the Python that it was made with is gone", f"rm -r {venv}, then try again")
    # pip comes last, so that one whose making was interrupted is made anew.
    if not (venv / "bin/pip").exists():
        with step(f"making {_shown(venv)} with {interpreter}"):
            _run(venv, [interpreter, "-m", "venv", str(venv)])


def pip_install(venv: Path, *arguments: str) -> None:
    """Install packages into a virtual environment; pip's words go into `install.log` there.

    Args:
        venv: where to.
        arguments: of `pip install`; relative paths in them start at the root of the tree.

    Raises:
        StackError: pip failed; its last lines are printed first.
    """
    _run(venv, [str(venv / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", *arguments])


def _stamp(kind: str) -> Path:
    """A file that is there when `.venv` holds what the sources now ask for."""
    digest = hashlib.sha256()
    for source in SOURCES:
        digest.update(source.read_bytes())
    digest.update(repr((str(ROOT), RUNTIME, DEVELOPMENT)).encode())
    return VENV / f".installed-{kind}-{digest.hexdigest()[:16]}"


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _run(venv: Path, command: list[str]) -> None:
    venv.mkdir(parents=True, exist_ok=True)
    said = venv / "install.log"
    environ = {name: value for name, value in os.environ.items() if name not in ELSEWHERE} | {"PIP_USER": "0"}
    # The command hears Ctrl-C itself, and is given the time to undo what it has begun.
    with said.open("w") as log, defer_signals():
        done = subprocess.run(command, cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode == 0:
            return
    last = tail(said)
    say(last)
    if os_errors.is_full(venv):
        raise os_errors.full(venv)  # what was said may not have found room either
    raise StackError(
        f"{' '.join(command[1:4])} failed; its last lines stand above, all of them in {said}",
        pip_errors.remedy(last, venv),
    )
