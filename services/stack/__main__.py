"""`python -m services.stack setup|programs|settings`: what the stack needs before it can be started."""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.stack.command_line")
