"""The deployments of a stack on one host: containers, local processes, or processes out of Apptainer's images.

Any Python runs what is here, so a broken `.venv` never keeps a stack from being stopped.
"""

from __future__ import annotations

from typing import Protocol

from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.apptainer import commands as apptainer
from services.up.compose import commands as compose
from services.up.compose import engine
from services.up.compose.project import Composed
from services.up.native import commands as native


class Commands(Protocol):
    """The commands on a running stack; each raises `StackError` where it fails."""

    def status(self, run: RunDir, as_json: bool = False) -> None: ...

    def logs(self, run: RunDir, service: str = "", follow: bool = False) -> None: ...

    def down(self, run: RunDir) -> None: ...


COMMANDS: dict[str, Commands] = {"compose": compose, "native": native, "apptainer": apptainer}


def running(run: RunDir) -> str:
    """Return the deployment that runs in this directory, as STACK names it; empty where none does."""
    composed = Composed.load(run)
    if composed and composed.up:
        return "compose"
    last = run.load()
    return last.backend if last else ""


def choose(settings: Settings, run: RunDir) -> tuple[str, str]:
    """Return the deployment to start, and why.

    Raises:
        StackError: STACK names another one than the one that runs.
    """
    asked, now = settings["STACK"], running(run)
    if asked and now and asked != now:
        raise StackError(f"STACK={asked}: the stack runs already, with STACK={now}", "make down, then make up")
    if asked:
        return asked, f"STACK={asked}"
    if now:
        return now, "the stack runs this way"
    found, reason = engine.find()
    return ("compose", "an engine answers (STACK=native: local processes)") if found else ("native", reason)


def commands(run: RunDir) -> Commands:
    """Return the commands of the deployment that runs in this directory; the native ones say so where none does."""
    return COMMANDS[running(run) or "native"]


def clean(run: RunDir) -> None:
    """Stop what runs, and remove what it has written: volumes and jobs too.

    Raises:
        StackError: something still runs, or a volume cannot be removed.
        OSError: a file cannot be removed.
    """
    commands(run).down(run)
    if Composed.load(run):
        compose.clean(run)
    run.remove()
