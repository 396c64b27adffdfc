"""Run a command of the stack, for the Makefile: `python -m services.up COMMAND`.

The docstring of `up.py` lists the steps of `make up`.
"""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.up.command_line")
