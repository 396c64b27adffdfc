"""Render self-contained HTML pages, without scripts or external resources, with a light and a dark color scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The Content-Security-Policy of a page."""
COLORS = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #5b6570; --line: #c9d0d7; --mark: #0b62c4;
  --bar: #9cc4ee }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e6e9ec; --soft: #a3adb8; --line: #3a434d;
  --mark: #6cb0ff; --bar: #2c5a8c } }
"""
"""The colors of pages and plots, as CSS variables."""
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
    """A table cell that contains HTML; other cells are escaped."""


def render_document(title: str, body: str, *, style: str = "") -> str:
    """Return a complete HTML page.

    Args:
        title: title and heading of the page.
        body: HTML below the heading.
        style: CSS in addition to `STYLE`.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{COLORS}{STYLE}{style}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}</main>\n</body>\n</html>\n"
    )


def render_table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    long_columns: Iterable[int] = (),
    shows_empty: bool = False,
) -> str:
    """Return an HTML table. Without rows, return only the caption if `shows_empty` is true, else an empty string.

    Args:
        caption: caption of the table.
        headings: headings of the columns.
        rows: cells of each row, texts or `Html`; the first cell is the heading of the row.
        long_columns: indices of the columns with long texts.
        shows_empty: whether to show the caption if there are no rows.
    """
    if not rows and not shows_empty:
        return ""
    if not rows:
        return f"<p>{escape(caption)}</p>\n"
    long_cells = {*long_columns}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(f"<tr>{''.join(_cells(row, long_cells))}</tr>\n" for row in rows)
    class_attribute = ' class="texts"' if long_cells else ""
    return (
        f'<div class="wide"><table{class_attribute}><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _cells(row: Sequence[Any], long_columns: set[int]) -> Iterator[str]:
    for index, cell in enumerate(row):
        text = cell if isinstance(cell, Html) else escape(str(cell))
        class_attribute = ' class="long"' if index in long_columns else ""
        yield f'<th scope="row">{text}</th>' if index == 0 else f"<td{class_attribute}>{text}</td>"
