"""How a command begins: Ctrl-C while it is still loaded ends it as quietly as later."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn


def enter(module: str) -> NoReturn:
    """Run the `main` of a module as a command.

    Args:
        module: by its whole name; loaded here.

    Raises:
        SystemExit: always, with the exit status.
    """
    try:
        from services.stack.console import exit_status

        main = import_module(module).main
    except KeyboardInterrupt:
        sys.exit(130)  # nothing was begun
    sys.exit(exit_status(main))
