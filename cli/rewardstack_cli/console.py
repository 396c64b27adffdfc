"""Where the command line writes: results to stdout, everything else to stderr."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rewardstack.transport.endpoint import SAID_AFTER

T = TypeVar("T")

FRAME = 3
"""Columns of the terminal that a table's column takes beside its text, and the table one more."""
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


class Grid:
    """A table that breaks no word, number or address: where they do not fit side by side, each row becomes a list.

    Args:
        columns: their headings.
    """

    def __init__(self, *columns: str) -> None:
        self._columns = [Text(column) for column in columns]
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: Text | str) -> None:
        """Adds a row with a cell for each column."""
        self._rows.append([Text(cell) if isinstance(cell, str) else cell for cell in cells])

    def show(self) -> None:
        """Prints it on stdout."""
        widths = self._widths(out.width)
        if not widths:
            for line in self._lists(out.width):
                out.print(line, soft_wrap=True, highlight=False)
            return
        table = Table()
        for column, width in zip(self._columns, widths, strict=True):
            table.add_column(column, width=width)
        for row in self._rows:
            table.add_row(*row)
        out.print(table)

    def _widths(self, most: int) -> list[int]:
        """Of the columns where the table has `most`; empty where a word would be broken."""
        columns = [[heading, *cells] for heading, *cells in zip(self._columns, *self._rows, strict=True)]
        whole = [max(cell.cell_len for cell in cells) for cells in columns]
        widths = [max(map(cell_len, " ".join(cell.plain for cell in cells).split())) for cells in columns]
        spare = most - sum(widths) - FRAME * len(columns) - 1
        # What little would make whole comes first, so that one long column is wrapped rather than several.
        for at in sorted(range(len(columns)), key=lambda at: whole[at] - widths[at]) if spare >= 0 else ():
            more = min(spare, whole[at] - widths[at])
            widths[at], spare = widths[at] + more, spare - more
        return widths if spare >= 0 else []

    def _lists(self, most: int) -> Iterator[Text]:
        """Each row's first cell, and below it the others that hold something, with their headings."""
        margin = 2 + max(heading.cell_len for heading in self._columns[1:]) + 2
        for first, *cells in self._rows:
            yield Text(first.plain, "bold")
            for heading, cell in zip(self._columns[1:], cells, strict=True):
                for at, line in enumerate(_broken(cell, most - margin) if cell else ()):
                    yield Text(("" if at else f"  {heading.plain}").ljust(margin)).append_text(line)


def put(line: Text, console: Console = out) -> None:
    """Prints a line; on a terminal, which would break it anywhere, it is broken between words and keeps its margin."""
    margin = " " * (len(line) - len(line.plain.lstrip()))
    text = line[len(margin) :] if margin else line
    for part in _broken(text, console.width - len(margin)) if console.is_terminal else [text]:
        console.print(Text(margin).append_text(part), soft_wrap=True, highlight=False)


def _broken(line: Text, width: int) -> list[Text]:
    """`line` in pieces of at most `width` that begin with a word each; a longer word is a piece of its own."""
    text, begins = line.plain, [0]
    for word in re.finditer(r"\S+", text):
        if text[begins[-1] : word.start()].strip() and cell_len(text[begins[-1] : word.end()]) > width:
            begins.append(word.start())
    parts = line.divide(begins[1:])
    for part in parts:
        part.rstrip()
    return [*parts]


def say(message: str) -> None:
    """One line on stderr."""
    put(plain_text(message), err)


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
