"""`python -m services.native setup|programs|models|up|status|logs|down`: what the Makefile calls."""

from __future__ import annotations

import argparse
import sys

from services.native.errors import StackError


def main() -> int:
    """Run one command; returns its exit status."""
    arguments = _parser().parse_args()
    try:
        _run(arguments)
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; make down stops whatever runs", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.native", description="The stack as local processes.")
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make .venv")
    setup.add_argument("--dev", action="store_true", help="with the tools of tests and lint")
    commands.add_parser("programs", help="find or install nginx and redis-server")
    commands.add_parser("models", help="make the environment of the model servers")
    commands.add_parser("up", help="start the services and score the shipped samples")
    commands.add_parser("status", help="state, process id, uptime and health of each service")
    logs = commands.add_parser("logs", help="the last lines of the logs")
    logs.add_argument("--service", default="", help="one service only")
    logs.add_argument("--follow", action="store_true", help="go on until interrupted")
    commands.add_parser("down", help="stop the services")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    # `setup` runs before there is a .venv, and the others need what is in it.
    if arguments.command == "setup":
        from services.native import venv

        venv.make(dev=arguments.dev)
    elif arguments.command == "programs":
        from services.native import packages

        packages.require()
    elif arguments.command == "models":
        from services.native import model_servers

        model_servers.prepare()
    elif arguments.command == "up":
        from services.native.up import up

        up()
    else:
        from services.native import commands

        options = {name: value for name, value in vars(arguments).items() if name != "command"}
        getattr(commands, arguments.command)(**options)


if __name__ == "__main__":
    sys.exit(main())
