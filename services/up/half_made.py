"""The commands on a stack where `.venv` is not whole: its making was interrupted, or what it was made with is gone.

They need nothing but Python itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up.apptainer import endpoints
from services.up.compose import commands as compose
from services.up.compose import record
from services.up.native import session


@dataclass(frozen=True)
class HalfMade:
    """What can be done without the packages.

    Args:
        why: what is wrong with `.venv`.
    """

    why: str

    def status(self, run: RunDir, as_json: bool = False) -> None:
        """Say whether something runs.

        Raises:
            StackError: always.
        """
        if not _composed(run) and not session.members(run):
            raise StackError("nothing runs here", "make up")
        raise StackError(
            f"services run here, which cannot be asked: {self.why}", "make up makes it whole, make down stops them"
        )

    def logs(self, run: RunDir, service: str = "", follow: bool = False) -> None:
        """Say where the logs are.

        Raises:
            StackError: always.
        """
        if not run.logs.exists():
            raise StackError("nothing has run here", "make up")
        raise StackError(f"the logs cannot be shown: {self.why}", f"make up makes it whole; logs are in {run.logs}")

    def down(self, run: RunDir) -> None:
        """Stop what runs; says so where nothing does.

        Raises:
            StackError: something still runs.
        """
        if _composed(run):
            compose.down(run)
        elif session.members(run):
            with step("stopping the services"):
                session.end(run)
            endpoints.withdraw(run)
        else:
            say("nothing runs here")


def _composed(run: RunDir) -> bool:
    """Whether the stack was started as containers, and not stopped since."""
    composed = record.recall(run)
    return bool(composed and composed.up)
