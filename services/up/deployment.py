"""Choose the deployment of a stack on one host: containers, local processes, or processes in Apptainer images.

This module needs no third-party packages, so that a stack can be stopped even if `.venv` is broken.
"""

from __future__ import annotations

from types import ModuleType

from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.compose import commands as compose
from services.up.compose import engine
from services.up.compose.project import ComposeRecord
from services.up.native import commands as native


def running(run: RunDir) -> str:
    """Return the deployment that a run directory records as running, as a value of STACK; empty if there is none."""
    composed = ComposeRecord.load(run)
    if composed and composed.up:
        return "compose"
    last = run.load()
    return last.backend if last else ""


def choose(settings: Settings, run: RunDir) -> tuple[str, str]:
    """Return the deployment to start, and the reason for it.

    Raises:
        StackError: STACK differs from the running deployment.
    """
    requested, now = settings["STACK"], running(run)
    if requested and now and requested != now:
        raise StackError(f"STACK={requested}: the stack is already running with STACK={now}", "make down, then make up")
    if requested:
        return requested, f"STACK={requested}"
    if now:
        return now, "already running"
    container_engine, reason = engine.find()
    if not container_engine:
        return "native", reason
    return "compose", "a container engine answers; set STACK=native to run local processes"


def commands(run: RunDir) -> ModuleType:
    """Return the module with `status`, `logs` and `down` for the deployment that runs in a run directory."""
    return compose if running(run) == "compose" else native


def clean(run: RunDir) -> None:
    """Stop the stack and remove everything that it has created, including volumes and jobs.

    Raises:
        StackError: a process still runs, or a volume cannot be removed.
        OSError: a file cannot be removed.
    """
    commands(run).down(run)
    if ComposeRecord.load(run):
        compose.clean(run)
    run.remove()
