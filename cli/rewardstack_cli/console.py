"""Print the output of the command line: results on stdout, everything else on stderr."""

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

from rewardstack.transport import timing

T = TypeVar("T")

COLUMN_PADDING = 3
"""Width of a column's left border and padding, in characters. The table's right border takes one more character."""
DEFAULT_WIDTH = 120
"""Width of the output, in characters, if stdout is not a terminal and the variable COLUMNS is not set."""

out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else DEFAULT_WIDTH)
err = Console(stderr=True)


def printable(text: str) -> str:
    """Return `text` on one line, with its control characters replaced, so that it cannot control the terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in " ".join(text.split())
    )


def plain_text(text: str, style: str = "") -> Text:
    """Make untrusted text safe to print: make it `printable`, and take its square brackets literally, not as markup."""
    return Text(printable(text), style=style)


def count_rows(count: int) -> str:
    """Return "1 row", or the count with "rows"."""
    return "1 row" if count == 1 else f"{count:,} rows"


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout, in ASCII only, so that no text in it can control the terminal."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


class Grid:
    """A table that never breaks a word, number or address: if the columns do not fit, each row becomes a list.

    Args:
        columns: headings of the columns.
    """

    def __init__(self, *columns: str) -> None:
        self._columns = [Text(column) for column in columns]
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: Text | str) -> None:
        """Add a row with one cell for each column."""
        self._rows.append([Text(cell) if isinstance(cell, str) else cell for cell in cells])

    def show(self) -> None:
        """Print the table on stdout."""
        widths = self._column_widths(out.width)
        if not widths:
            for line in self._rows_as_lists(out.width):
                out.print(line, soft_wrap=True, highlight=False)
            return
        table = Table()
        for column, width in zip(self._columns, widths, strict=True):
            table.add_column(column, width=width)
        for row in self._rows:
            table.add_row(*row)
        out.print(table)

    def _column_widths(self, max_width: int) -> list[int]:
        """Return the column widths of a table of at most `max_width` characters; empty if a word would be broken."""
        columns = [[heading, *cells] for heading, *cells in zip(self._columns, *self._rows, strict=True)]
        full_widths = [max(cell.cell_len for cell in cells) for cells in columns]
        widths = [max(map(cell_len, " ".join(cell.plain for cell in cells).split())) for cells in columns]
        spare = max_width - sum(widths) - COLUMN_PADDING * len(columns) - 1
        # First widen the columns that need the least, so that only the longest columns are wrapped.
        for at in sorted(range(len(columns)), key=lambda at: full_widths[at] - widths[at]) if spare >= 0 else ():
            more = min(spare, full_widths[at] - widths[at])
            widths[at], spare = widths[at] + more, spare - more
        return widths if spare >= 0 else []

    def _rows_as_lists(self, max_width: int) -> Iterator[Text]:
        """Yield each row as lines: the first cell, then the cells that are not empty, with their headings."""
        margin = 2 + max(heading.cell_len for heading in self._columns[1:]) + 2
        for first, *cells in self._rows:
            yield Text(first.plain, "bold")
            for heading, cell in zip(self._columns[1:], cells, strict=True):
                for at, line in enumerate(_wrap(cell, max_width - margin) if cell else ()):
                    yield Text(("" if at else f"  {heading.plain}").ljust(margin)).append_text(line)


def put(line: Text, console: Console = out) -> None:
    """Print a line; on a terminal, wrap it between words and keep its indentation."""
    margin = " " * (len(line) - len(line.plain.lstrip()))
    text = line[len(margin) :] if margin else line
    for part in _wrap(text, console.width - len(margin)) if console.is_terminal else [text]:
        console.print(Text(margin).append_text(part), soft_wrap=True, highlight=False)


def _wrap(line: Text, width: int) -> list[Text]:
    """Split `line` between words into parts of at most `width` characters; a longer word is a part by itself."""
    text, starts = line.plain, [0]
    for word in re.finditer(r"\S+", text):
        if text[starts[-1] : word.start()].strip() and cell_len(text[starts[-1] : word.end()]) > width:
            starts.append(word.start())
    parts = line.divide(starts[1:])
    for part in parts:
        part.rstrip()
    return [*parts]


def say(message: str) -> None:
    """Print a message on stderr."""
    put(plain_text(message), err)


def print_error(message: str) -> None:
    """Print an error message on stderr."""
    say(f"rewardstack: error: {message}")


async def wait_with_notice(call: Coroutine[Any, Any, T], seconds: float, name: str) -> T:
    """Return the result of `call`; after `LOG_AFTER` seconds, print on stderr that the command is waiting.

    Args:
        call: coroutine to await; its exceptions are raised.
        seconds: timeout in seconds.
        name: name of the service, without secrets.

    Raises:
        asyncio.TimeoutError: `call` took longer than the timeout.
    """
    line = f"waiting: {name} has sent nothing for {timing.LOG_AFTER:g} s; timeout {seconds:g} s"
    timer = asyncio.get_running_loop().call_later(timing.LOG_AFTER, say, line)
    try:
        return await asyncio.wait_for(call, seconds)
    finally:
        timer.cancel()


class LogHandler(logging.Handler):
    """Prints log records on stderr, above the progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, each line of a traceback on its own line."""
        for line in self.format(record).splitlines():
            say(line)
