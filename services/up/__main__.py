"""Run a command of the stack: `python -m services.up COMMAND`. The Makefile calls it. `up.py` has the steps of `make up`."""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.up.command_line")
