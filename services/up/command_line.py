"""The commands of `python -m services.up`.

What needs packages is imported last: with a broken `.venv` a stack can still be asked, stopped and cleaned away.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import export_further, load, run_dir
from services.up import deployment, preflight
from services.up.apptainer import images, shell


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.up", description="The stack of this tree.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("preflight", help="check what up needs, before anything is installed")
    commands.add_parser("up", help="start the services and score the shipped samples")
    commands.add_parser("plan", help="what up would do, and why; changes nothing")
    status = commands.add_parser("status", help="state, uptime and health of each service")
    status.add_argument("--json", action="store_true", help="print JSON")
    logs = commands.add_parser("logs", help="the last lines of the logs")
    logs.add_argument("--service", default="", help="one service only")
    logs.add_argument("--follow", action="store_true", help="go on until interrupted")
    commands.add_parser("down", help="stop the services")
    commands.add_parser("clean", help="stop them and remove what they have written")
    images = commands.add_parser("images", help="build the image of reward server and workers")
    images.add_argument("--registry", default="", help="push it there, such as registry.example.com/team")
    commands.add_parser("models", help="make the environment of the model servers")
    sif = commands.add_parser("sif", help="build images for Apptainer")
    sif.add_argument("names", nargs="*", help="of images; none for those that nodes with GPUs need")
    sif.add_argument("--where", action="store_true", help="print where they are instead")
    commands.add_parser("env", help="print what sets a trainer's variables")
    return parser


def main() -> None:
    """Run one command."""
    arguments = _parser().parse_args()
    command = arguments.command
    if command in ("up", "plan", "images", "models", "preflight", "sif"):
        export_further(ROOT)
        _starting(arguments)()
        return
    with suppress(StackError):  # which keeps no stack from being stopped
        export_further(ROOT)
    folder = run_dir(ROOT)
    # Where nothing was ever started, as in a path that is refused, there is nothing to stop.
    if command in ("down", "clean") and not (ROOT / folder).exists():
        if command == "down":
            say("nothing runs here")
        return
    run = RunDir(folder)
    if command == "env":
        print(shell.exports(run))
    elif command == "status":
        deployment.commands(run).status(run, arguments.json)
    elif command == "logs":
        deployment.commands(run).logs(run, arguments.service, arguments.follow)
    else:
        with run.lock():
            deployment.commands(run).down(run) if command == "down" else deployment.clean(run)


def _starting(arguments: argparse.Namespace) -> Callable[[], None]:
    """Return a command that reads all settings.

    Raises:
        StackError: it needs packages, and one cannot be loaded.
    """
    if arguments.command == "preflight":
        return preflight.check
    if arguments.command == "sif":
        return partial(images.where if arguments.where else images.build, load(ROOT), arguments.names)
    try:
        from rewardstack.core.descriptors import raise_open_files
        from services.up import model_servers, up
    except Exception as error:
        raise StackError(f"{ROOT / '.venv'} is broken ({error})", f"rm -r {ROOT / '.venv'}, then try again") from error
    raise_open_files()
    commands = {"up": up.up, "plan": up.show_plan, "models": model_servers.prepare}
    return commands.get(arguments.command) or partial(up.build_image, arguments.registry)
