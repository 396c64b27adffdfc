"""The error of the stack: what is wrong, and what to do about it."""

from __future__ import annotations

COMMAND = "\n      "
"""Precedes a command in a remedy: puts it on its own line, which is not wrapped, so that it can be copied."""


class StackError(Exception):
    """The stack cannot be set up, started or stopped.

    Args:
        problem: what is wrong, with the variable, program or service.
        remedy: what the user can do; empty if the problem says it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem} — {remedy}" if remedy else problem)
        self.problem = problem
