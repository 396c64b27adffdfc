"""The entry point: run the command, and turn an exception into one line and an exit status.

| exit status | meaning |
| --- | --- |
| 0 | done |
| 1 | a service or the machine failed (disk full, ...); `explain`: there is no score; `check`: something does not work |
| 2 | the input, an argument or a setting is wrong, or the budget is spent |
| 3 | `score`, `submit --wait`, `evaluate`: done, but some rows have no score |
| 3 | `--dry-run`: some rows cannot be scored; `score --table`: some rows are not `ok` |
| 130, 143 | interrupted, terminated |
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from rewardstack import __version__
from rewardstack.core.descriptors import raise_open_file_limit
from rewardstack.core.secret_files import SECRETS, SERVER_KEYS, read_secret_files
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.score import MISSING_LOG
from rewardstack_cli import console

COMMANDS = ("score", "submit", "explain", "evaluate", "check", "routes", "prepare")
"""The commands, each the name of a module of this package, in the order of `--help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments; None for the arguments of the process.

    Returns:
        The exit status.
    """
    handler = console.LogHandler()
    handler.addFilter(lambda record: record.name != MISSING_LOG)  # the commands report rows without a score themselves
    logging.basicConfig(handlers=[handler], format="rewardstack: %(levelname)s: %(message)s")
    args = _parse(sys.argv[1:] if argv is None else argv)
    raise_open_file_limit()
    try:
        read_secret_files((*SECRETS, SERVER_KEYS))
        return int(args.run(args))
    except KeyboardInterrupt:
        console.say("interrupted")
        return 130
    except (RewardstackError, OSError) as error:
        console.print_error(str(error))
        return 2 if isinstance(error, ConfigError) else 1


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; only the module of the named command is imported, because some take long."""
    parser = argparse.ArgumentParser("rewardstack", description="Score samples with the configured services.")
    parser.add_argument("--version", action="version", version=f"rewardstack {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in [one for one in argv[:1] if one in COMMANDS] or COMMANDS:
        import_module(f"rewardstack_cli.{name}").add_parser(commands)
    return parser.parse_args(argv)
