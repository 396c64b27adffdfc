"""`python -m services.make up|status|logs|down|clean|images`: what the Makefile calls, whichever way the stack runs.

`make up` takes containers where an engine answers, else local processes; STACK insists on one of the two. The other
commands act on what runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Protocol

from services.compose import commands as compose
from services.compose import engine, record
from services.compose.up import up as compose_up
from services.native import commands as native
from services.native import consistency
from services.native.console import exit_status, say
from services.native.errors import StackError
from services.native.rundir import ROOT, RunDir
from services.native.settings import Settings, load, run_dir
from services.native.up import up as native_up


class Commands(Protocol):
    """What can be asked of a stack that runs, either way."""

    def status(self, run: RunDir) -> None: ...

    def logs(self, run: RunDir, service: str = "", follow: bool = False) -> None: ...

    def down(self, run: RunDir) -> None: ...


COMMANDS: dict[str, Commands] = {"compose": compose, "native": native}
UP: dict[str, Callable[[Settings, RunDir], None]] = {"compose": compose_up, "native": native_up}


def running_way(run: RunDir) -> str:
    """Which way the stack of this directory runs; empty where none does."""
    composed = record.recall(run)
    if composed and composed.up:
        return "compose"
    return "native" if run.recall() else ""


def choose(settings: Settings, run: RunDir) -> str:
    """Which way to start the stack; says so where a choice was made.

    Raises:
        StackError: the way that STACK insists on cannot be had, or the stack runs the other way.
    """
    asked, now = settings["STACK"], running_way(run)
    if asked and now and asked != now:
        raise StackError(f"STACK={asked}: the stack runs already, with STACK={now}", "make down, then make up")
    if asked == "compose":
        engine.require()
    if asked or now:
        return asked or now
    found, reason = engine.find()
    say("==> containers (STACK=native: local processes)" if found else f"==> local processes: {reason}")
    return "compose" if found else "native"


def up() -> None:
    """Start the stack, wait until it is well, and score the shipped samples.

    Raises:
        StackError: a setting is wrong, or something does not come up.
    """
    settings = load(ROOT)
    consistency.require(settings)
    run = RunDir(settings["RUN_DIR"])
    run.make()
    with run.lock():
        way = choose(settings, run)
        consistency.require_for(way, settings)
        UP[way](settings, run)


def images() -> None:
    """Build the image of reward server and workers.

    Raises:
        StackError: no engine answers, or it could not be built.
    """
    settings = load(ROOT)
    run = RunDir(settings["RUN_DIR"])
    run.make()
    compose.images(settings, run)


def down(run: RunDir) -> None:
    """Stop what runs.

    Raises:
        StackError: something still runs.
    """
    COMMANDS[running_way(run) or "native"].down(run)


def clean(run: RunDir) -> None:
    """Stop what runs, and remove what it has written: volumes and jobs too.

    Raises:
        StackError: something still runs, or cannot be removed.
    """
    down(run)
    if record.recall(run):
        compose.clean(run)
    run.remove()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.make", description="The stack of this tree.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the services and score the shipped samples")
    commands.add_parser("status", help="state, uptime and health of each service")
    logs = commands.add_parser("logs", help="the last lines of the logs")
    logs.add_argument("--service", default="", help="one service only")
    logs.add_argument("--follow", action="store_true", help="go on until interrupted")
    commands.add_parser("down", help="stop the services")
    commands.add_parser("clean", help="stop them and remove what they have written")
    commands.add_parser("images", help="build the image of reward server and workers")
    return parser


def main() -> None:
    """Run one command."""
    arguments = _parser().parse_args()
    if arguments.command in ("up", "images"):
        {"up": up, "images": images}[arguments.command]()
        return
    run = RunDir(run_dir(ROOT))
    if arguments.command in ("down", "clean"):
        run.make()
        with run.lock():
            {"down": down, "clean": clean}[arguments.command](run)
    elif arguments.command == "status":
        COMMANDS[running_way(run) or "native"].status(run)
    else:
        COMMANDS[running_way(run) or "native"].logs(run, arguments.service, arguments.follow)


if __name__ == "__main__":
    sys.exit(exit_status(main))
