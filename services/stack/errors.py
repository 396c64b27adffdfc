"""Define the error that commands of the stack report: what is wrong, and what to do about it."""

from __future__ import annotations

COMMAND = "\n      "
"""Text before a command in a remedy; the command gets its own line, which is not wrapped, so that it can be copied."""


class StackError(Exception):
    """The stack cannot be set up, started or stopped.

    Args:
        problem: what is wrong, and with which variable, program or service.
        remedy: what the user can do; empty if this is clear from the problem.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} — {remedy}" if remedy else problem)
        self.problem = problem
