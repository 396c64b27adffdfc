"""`status`, `logs` and `down` where the services run in Apptainer's images: they are local processes."""

from __future__ import annotations

from services.stack.rundir import RunDir
from services.up.apptainer import endpoints
from services.up.native import commands as native
from services.up.native.commands import logs as logs
from services.up.native.commands import status as status


def down(run: RunDir) -> None:
    """Stop everything, and remove the endpoints file; says so where nothing runs.

    Raises:
        StackError: something still runs.
    """
    try:
        native.down(run)
    finally:
        endpoints.withdraw(run)
