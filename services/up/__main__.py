"""`python -m services.up COMMAND`: what the Makefile calls, whichever way the stack runs."""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.up.command_line")
