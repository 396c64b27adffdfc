"""Where the command line writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardstack.transport.incident import SAID_AFTER

T = TypeVar("T")

WIDTH = 120
"""Columns where there is no terminal to have a width."""

out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH)
err = Console(stderr=True)


def printable(text: str) -> str:
    """`text` on one line and without control characters: what is scored is not to steer the terminal."""
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in " ".join(text.split()))


def plain_text(text: str, style: str = "") -> Text:
    """Foreign text for a table: printable, its square brackets no markup."""
    return Text(printable(text), style=style)


def print_json(value: Any) -> None:
    """A value for programs, on stdout; only ASCII, so that nothing in it steers a terminal."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def new_table(*columns: str) -> Table:
    """An empty table that folds what is too wide rather than cutting it."""
    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def say(message: str) -> None:
    """One line on stderr."""
    err.print(plain_text(message), soft_wrap=True, highlight=False)


def complain(message: str) -> None:
    """One line on stderr that says what went wrong."""
    say(f"rewardstack: error: {message}")


async def wait_aloud(call: Coroutine[Any, Any, T], seconds: float, who: str) -> T:
    """What `call` returns; after `SAID_AFTER` a line on stderr tells what is waited for.

    Args:
        call: to be awaited.
        seconds: that it may take.
        who: is asked, and for what, without secrets.

    Raises:
        asyncio.TimeoutError: it took longer; and what `call` raises.
    """
    line = f"waiting: {who} has sent nothing for {SAID_AFTER:g} s; it has {seconds:g} s"
    timer = asyncio.get_running_loop().call_later(SAID_AFTER, say, line)
    try:
        return await asyncio.wait_for(call, seconds)
    finally:
        timer.cancel()


class LogHandler(logging.Handler):
    """Log records as lines of their own, above a progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints the record; a traceback keeps its lines."""
        for line in self.format(record).splitlines():
            say(line)
