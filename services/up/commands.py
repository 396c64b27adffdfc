"""What can be asked of a stack that runs, whichever way it does."""

from __future__ import annotations

from typing import Protocol

from services.stack.rundir import RunDir
from services.up.apptainer import commands as apptainer
from services.up.choice import running_way
from services.up.compose import commands as compose
from services.up.compose import record
from services.up.native import commands as native


class Commands(Protocol):
    """The commands on a stack; each raises `StackError` where it cannot do what it is for."""

    def status(self, run: RunDir, as_json: bool = False) -> None: ...

    def logs(self, run: RunDir, service: str = "", follow: bool = False) -> None: ...

    def down(self, run: RunDir) -> None: ...


COMMANDS: dict[str, Commands] = {"compose": compose, "native": native, "apptainer": apptainer}


def commands(run: RunDir) -> Commands:
    """Return the commands of the deployment that runs in this directory; the native ones say so where none does."""
    return COMMANDS[running_way(run) or "native"]


def clean(run: RunDir, commands: Commands) -> None:
    """Stop what runs, and remove what it has written: volumes and jobs too.

    Args:
        run: directory of the stack.
        commands: that stop it.

    Raises:
        StackError: something still runs, or a volume cannot be removed.
        OSError: a file cannot be removed.
    """
    commands.down(run)
    if record.recall(run):
        compose.clean(run)
    run.remove()
