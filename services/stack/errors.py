"""The error that commands of the stack report: what is wrong, and what to do about it."""

from __future__ import annotations

COMMAND = "\n      "
"""Text before a command in a remedy. The command gets its own line, which is not wrapped, so that it can be copied."""


class StackError(Exception):
    """Raised if the stack cannot be set up, started or stopped.

    Args:
        problem: description of the problem, including the variable, program or service that has it.
        remedy: what the user can do; empty if this is clear from the problem.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} — {remedy}" if remedy else problem)
        self.problem = problem
