"""Types for work that is dropped when no caller waits for it, separate so that importing them loads no scorers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

IsWanted = Callable[[], bool]
"""Returns whether a caller still waits for the work; must be thread-safe."""
Meanwhile = Callable[[], AbstractContextManager[None]]
"""Returns a context manager that the caller's thread enters while it waits for slow work."""


class UnwantedError(Exception):
    """The work was dropped because no caller waits for it."""


def always() -> bool:
    """Return True: the work is always wanted."""
    return True
