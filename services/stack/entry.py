"""Run a command so that Ctrl-C ends it without a traceback, even during its imports."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn


def enter(module: str) -> NoReturn:
    """Import a module, run its `main` function, and exit.

    Args:
        module: full name of the module.

    Raises:
        SystemExit: always, with the exit status.
    """
    try:
        from services.stack.console import exit_status

        main = import_module(module).main
    except KeyboardInterrupt:
        sys.exit(130)  # nothing has started
    sys.exit(exit_status(main))
