"""Whether somebody still waits for work, without what does the work: gunicorn's master loads none of that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

IsWanted = Callable[[], bool]
"""Returns whether somebody still waits for the work; it may be called from any thread."""
Meanwhile = Callable[[], AbstractContextManager[None]]
"""Returns what the caller's thread is in from when work turns out to take long until it is done."""


class UnwantedError(Exception):
    """Nobody waits for the work any more; it was dropped."""


def always() -> bool:
    """Return that the work is wanted."""
    return True
