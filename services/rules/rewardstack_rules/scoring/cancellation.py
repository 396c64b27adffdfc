"""Types for dropping work that no caller waits for any more. Importing this module loads no scorers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

IsWanted = Callable[[], bool]
"""Function that returns whether a caller still waits for the work; must be thread-safe."""
WaitContext = Callable[[], AbstractContextManager[None]]
"""Function that returns a context manager, which the caller's thread enters while it waits for slow work."""


class AbandonedError(Exception):
    """The work was dropped because no caller waits for it."""


def always_wanted() -> bool:
    """Return True, for work that is never dropped."""
    return True
