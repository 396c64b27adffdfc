"""`status`, `logs` and `down` for services in Apptainer images, which are local processes."""

from __future__ import annotations

from services.stack.rundir import RunDir
from services.up.apptainer import endpoints
from services.up.native import commands as native
from services.up.native.commands import logs as logs
from services.up.native.commands import status as status


def down(run: RunDir) -> None:
    """Stop the services and remove the endpoints file; print a message if nothing runs.

    Raises:
        StackError: a process still runs.
    """
    try:
        native.down(run)
    finally:
        endpoints.withdraw(run)
