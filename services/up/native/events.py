"""What supervisord tells its listeners: they are processes that it starts, and answer it on their standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from supervisor import childutils


def listen(act: Callable[[str], object]) -> NoReturn:
    """Act on each event until supervisord ends.

    Args:
        act: is given what the event holds.
    """
    while True:
        _, held = childutils.listener.wait(sys.stdin, sys.stdout)
        act(held)
        childutils.listener.ok(sys.stdout)


def log(text: str) -> None:
    """Say something: standard output is supervisord's, and a full disk has no room for what is said."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
