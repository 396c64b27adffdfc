"""`rewardstack score --table`: score a few samples and show the result."""

from __future__ import annotations

import asyncio
from itertools import islice

from rich.text import Text

from rewardstack.errors import RequestError
from rewardstack.score import Score
from rewardstack.settings import Settings
from rewardstack_cli.console import Grid, plain_text, put
from rewardstack_cli.data.rows import Row
from rewardstack_cli.data.source import Source
from rewardstack_cli.options import Options
from rewardstack_cli.pieces import score_piece
from rewardstack_cli.progress import NOT_ALL_SCORED, STYLES

TABLE_ROWS = 1000
"""Maximum number of rows in the table."""


def show_table(source: Source, options: Options) -> int:
    """Score the rows of `source` and print a table: for each row its name (or position), route, score and time.

    If there is a cache, the table also shows which scores come from it.

    Returns:
        The exit status: 0 if every row is `ok`, else 3.

    Raises:
        RewardstackError: a row is malformed, there are no rows or too many, or scoring fails.
    """
    rows = list(islice(source.rows(), TABLE_ROWS + 1))
    if len(rows) > TABLE_ROWS:
        raise RequestError(f"{source.path} has more than {TABLE_ROWS} rows; write them to a file with -o OUT", "IN")
    if not rows:
        raise source.no_rows_error()
    routes = [options.routes.find(options.request(row).data_source).pattern for row in rows]
    piece = asyncio.run(score_piece(rows, options.score))
    if piece.error is not None:
        raise piece.error
    scores = piece.scores
    with_cache = bool(Settings.from_env().cache_url) or any(score.cached for score in scores)
    table = Grid("sample", "route", "value", "status", *(["cached"] if with_cache else []), "time (ms)")
    for row, route, score in zip(rows, routes, scores, strict=True):
        table.add_row(*_row_cells(row, route, score, with_cache))
    table.show()
    not_ok = [(row, score) for row, score in zip(rows, scores, strict=True) if score.status != "ok"]
    for row, score in not_ok:
        put(plain_text(f"{_row_name(row)}: {score.status}: {score.reason}"))
    return NOT_ALL_SCORED if not_ok else 0


def _row_name(row: Row) -> str:
    name = row.fields.get("name")
    return name if isinstance(name, str) else row.position


def _row_cells(row: Row, route: str, score: Score, with_cache: bool) -> tuple[Text, ...]:
    return (
        plain_text(_row_name(row)),
        plain_text(route),
        Text("-" if score.value is None else f"{score.value:.4g}"),
        Text(score.status, STYLES[score.status]),
        *([Text("yes" if score.cached else "no")] if with_cache else []),
        Text(f"{score.latency_ms:,.1f}"),
    )
