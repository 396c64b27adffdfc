"""Entry point of the commands: Ctrl-C during imports ends them without a traceback."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn


def enter(module: str) -> NoReturn:
    """Run the `main` of a module as a command.

    Args:
        module: full name of the module, which is imported here.

    Raises:
        SystemExit: always, with the exit status.
    """
    try:
        from services.stack.console import exit_status

        main = import_module(module).main
    except KeyboardInterrupt:
        sys.exit(130)  # nothing has started
    sys.exit(exit_status(main))
