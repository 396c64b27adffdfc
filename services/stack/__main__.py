"""`python -m services.stack setup|programs|settings`: prepare what the stack needs before it starts."""

from __future__ import annotations

from services.stack.entry import enter

if __name__ == "__main__":
    enter("services.stack.command_line")
