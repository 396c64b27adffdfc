"""Run the commands of `python -m services.stack`."""

from __future__ import annotations

import argparse

from services.stack.console import say
from services.stack.rundir import ROOT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.stack", description="Prepare what the stack needs.")
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="create or update .venv")
    setup.add_argument("--dev", action="store_true", help="include the tools for tests and lint")
    commands.add_parser("programs", help="find or install nginx and redis-server")
    commands.add_parser("settings", help="write the files that are generated from the table of settings")
    return parser


def main() -> None:
    """Run one command."""
    arguments = _parser().parse_args()
    # Import modules late: `setup` runs before .venv exists, but the other commands need the packages in .venv.
    if arguments.command == "setup":
        from services.stack import venv

        venv.make(dev=arguments.dev)
    elif arguments.command == "settings":
        from services.stack import writer

        say(f"==> written: {', '.join(writer.write(ROOT)) or 'nothing has changed'}")
    else:
        from services.stack import packages

        packages.require()
