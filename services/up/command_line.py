"""Run the commands of `python -m services.up`.

Modules that need third-party packages are imported late, so that `status`, `down` and `clean` work even if `.venv` is
broken.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import export_extra_variables, load, run_dir
from services.up import deployment, preflight
from services.up.apptainer import images, shell


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.up", description="Commands of the stack.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("preflight", help="check what up needs, before anything is installed")
    commands.add_parser("up", help="start the services and score the shipped samples")
    commands.add_parser("plan", help="print what up would do, and why; changes nothing")
    status = commands.add_parser("status", help="print state, uptime and health of each service")
    status.add_argument("--json", action="store_true", help="print JSON")
    logs = commands.add_parser("logs", help="print the last lines of the logs")
    logs.add_argument("--service", default="", help="one service only")
    logs.add_argument("--follow", action="store_true", help="print new lines until interrupted")
    commands.add_parser("down", help="stop the services")
    commands.add_parser("clean", help="stop the services and remove what they have written")
    images = commands.add_parser("images", help="build the image of reward server and workers")
    images.add_argument("--registry", default="", help="push the image to a registry: registry.example.com/team")
    dist = commands.add_parser("dist", help="build wheels, sdists, chart and image into dist/")
    dist.add_argument("--no-image", action="store_true", help="do not build the container image")
    commands.add_parser("models", help="create the environment of the model servers")
    sif = commands.add_parser("sif", help="build images for Apptainer")
    sif.add_argument("names", nargs="*", help="names of images; default: those for nodes with GPUs")
    sif.add_argument("--where", action="store_true", help="print the paths of the images instead of building them")
    commands.add_parser("env", help="print shell commands that set a trainer's variables")
    return parser


def main() -> None:
    """Run one command."""
    arguments = _parser().parse_args()
    command = arguments.command
    if command in ("up", "plan", "images", "dist", "models", "preflight", "sif"):
        export_extra_variables(ROOT)
        _command_function(arguments)()
        return
    with suppress(StackError):  # invalid settings must not prevent stopping the stack
        export_extra_variables(ROOT)
    folder = run_dir(ROOT)
    # Without a run directory, nothing was started. Return early, because `RunDir` fails if RUN_DIR is invalid.
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


def _command_function(arguments: argparse.Namespace) -> Callable[[], None]:
    """Return the function that runs a command that needs valid settings.

    Raises:
        StackError: a module that the command needs cannot be imported.
    """
    if arguments.command == "preflight":
        return preflight.check
    if arguments.command == "sif":
        return partial(images.print_paths if arguments.where else images.build, load(ROOT), arguments.names)
    try:
        from rewardstack.core.descriptors import raise_open_file_limit
        from services.up import model_servers, up
    except Exception as error:
        raise StackError(f"{ROOT / '.venv'} is broken ({error})", f"rm -r {ROOT / '.venv'}, then try again") from error
    raise_open_file_limit()
    if arguments.command == "dist":
        from services.up import dist  # needs the development tools

        return partial(dist.make_dist, not arguments.no_image)
    commands = {"up": up.up, "plan": up.show_plan, "models": model_servers.prepare}
    return commands.get(arguments.command) or partial(up.build_image, arguments.registry)
