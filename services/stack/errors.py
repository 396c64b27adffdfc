"""The error of the stack: what is wrong, and what to do about it."""

from __future__ import annotations

COMMAND = "\n      "
"""Before a command in a remedy: it has a line to itself, which is not wrapped, so that it can be copied."""


class StackError(Exception):
    """Something stops the stack from being set up, started or stopped.

    Args:
        problem: what is wrong; names the variable, program or service.
        remedy: what the user can do; empty where the problem says it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} — {remedy}" if remedy else problem)
        self.problem = problem
