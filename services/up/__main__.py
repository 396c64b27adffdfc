"""`python -m services.up COMMAND`: what the Makefile calls, whichever way the stack runs."""

from __future__ import annotations

import argparse
import sys

from services.stack.console import exit_status
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import run_dir
from services.up import model_servers, ways

START = {"up": ways.up, "plan": ways.plan, "images": ways.images, "models": model_servers.prepare}
STOP = {"down": ways.down, "clean": ways.clean}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.up", description="The stack of this tree.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the services and score the shipped samples")
    commands.add_parser("plan", help="what up would do, and why; changes nothing")
    status = commands.add_parser("status", help="state, uptime and health of each service")
    status.add_argument("--json", action="store_true", help="print JSON")
    logs = commands.add_parser("logs", help="the last lines of the logs")
    logs.add_argument("--service", default="", help="one service only")
    logs.add_argument("--follow", action="store_true", help="go on until interrupted")
    commands.add_parser("down", help="stop the services")
    commands.add_parser("clean", help="stop them and remove what they have written")
    commands.add_parser("images", help="build the image of reward server and workers")
    commands.add_parser("models", help="make the environment of the model servers")
    return parser


def main() -> None:
    """Run one command."""
    arguments = _parser().parse_args()
    if arguments.command in START:
        START[arguments.command]()
        return
    run = RunDir(run_dir(ROOT))
    if arguments.command in STOP:
        run.make()
        with run.lock():
            STOP[arguments.command](run)
    elif arguments.command == "status":
        ways.commands(run).status(run, arguments.json)
    else:
        ways.commands(run).logs(run, arguments.service, arguments.follow)


if __name__ == "__main__":
    sys.exit(exit_status(main))
