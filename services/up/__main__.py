"""`python -m services.up COMMAND`: the Makefile calls this for every deployment."""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.up.command_line")
