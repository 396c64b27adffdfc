"""Whether somebody still waits for work, without what does the work: gunicorn's master loads none of that."""

from __future__ import annotations

from collections.abc import Callable

IsWanted = Callable[[], bool]
"""Returns whether somebody still waits for the work; it may be called from any thread."""


class UnwantedError(Exception):
    """Nobody waits for the work any more; it was dropped."""


def always() -> bool:
    """Return that the work is wanted."""
    return True
