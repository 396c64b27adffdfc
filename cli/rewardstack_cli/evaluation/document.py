"""A page that stands alone: no script, nothing fetched, dark or light as its reader's machine is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
COLOURS = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5b6570; --line: #c9d0d7; --mark: #0b62c4;
  --bar: #9cc4ee }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ec; --soft: #a3adb8; --line: #3a434d;
  --mark: #6cb0ff; --bar: #2c5a8c } }
"""
"""The colours of pages and plots, as variables of CSS."""
STYLE = """
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.45 system-ui, sans-serif }
h1 { font-size: 1.5rem; overflow-wrap: anywhere } h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere }
.wide { overflow-x: auto } .plots { display: flex; flex-wrap: wrap; gap: 1rem 2rem }
svg { width: 100%; max-width: 26rem; height: auto; color: var(--ink) } figure { margin: 0; flex: 1 1 18rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .7rem .3rem 0; text-align: left; vertical-align: top }
td { overflow-wrap: anywhere } .texts td { min-width: 5rem } .texts td.long { min-width: 14rem; white-space: pre-wrap }
p { max-width: 60rem; overflow-wrap: anywhere }
"""


class Html(str):
    """A cell that is HTML already; every other one is escaped."""


def document(title: str, body: str, *, style: str = "") -> str:
    """A whole page.

    Args:
        title: its name and its heading.
        body: what is below the heading, as HTML.
        style: CSS beside what every page has.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{COLOURS}{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}</main>\n</body>\n</html>\n"
    )


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, long: Iterable[int] = (), empty: bool = False
) -> str:
    """A table whose first column heads its rows; nothing where there are none, unless `empty`.

    Args:
        caption: what it is of.
        heads: of the columns.
        rows: their cells, texts or `Html`.
        long: the columns of texts that may be long.
        empty: whether it is shown without rows.
    """
    if not rows and not empty:
        return ""
    if not rows:
        return f"<p>{escape(caption)}</p>\n"
    texts = {*long}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = "".join(f"<tr>{''.join(_cells(row, texts))}</tr>\n" for row in rows)
    kind = ' class="texts"' if texts else ""
    return (
        f'<div class="wide"><table{kind}><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _cells(row: Sequence[Any], long: set[int]) -> Iterator[str]:
    for at, cell in enumerate(row):
        text = cell if isinstance(cell, Html) else escape(str(cell))
        kind = ' class="long"' if at in long else ""
        yield f'<th scope="row">{text}</th>' if at == 0 else f"<td{kind}>{text}</td>"
