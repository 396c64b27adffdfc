"""`rewardstack score`: scores a file of samples, and goes on where an interrupted run ended."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rewardstack.client import route_table
from rewardstack.score import ON_ERROR
from rewardstack.settings import Settings
from rewardstack_cli.cost import show_cost
from rewardstack_cli.data.rows import SAMPLE
from rewardstack_cli.data.source import Source
from rewardstack_cli.options import Options
from rewardstack_cli.run import Run
from rewardstack_cli.table import TABLE_ROWS, show_table

CHUNK_SIZE = 1024
"""Rows in flight, unless told otherwise."""


def add_parser(commands: Any) -> None:
    """Adds the command's arguments."""
    parser = commands.add_parser("score", help="score a file of samples", description=__doc__)
    parser.add_argument("input", metavar="IN", type=Path, help="samples: .jsonl or .parquet")
    result = parser.add_mutually_exclusive_group(required=True)
    result.add_argument(
        "-o", "--output", metavar="OUT", type=Path, help="the same rows with their scores: .jsonl or .parquet"
    )
    result.add_argument("--table", action="store_true", help=f"print a table instead (at most {TABLE_ROWS} rows)")
    result.add_argument("--dry-run", action="store_true", help="print what it would cost; nothing is scored or written")
    parser.add_argument("--data-source", metavar="NAME", help="for rows that have no data_source")
    parser.add_argument("--on-error", choices=ON_ERROR, help="what a row without a score is worth, for every route")
    parser.add_argument("--chunk-size", metavar="ROWS", type=positive(int), default=CHUNK_SIZE,
                        help="rows in flight, which a killed run scores again (%(default)s)")  # fmt: skip
    parser.add_argument("--timeout", metavar="SECONDS", type=positive(float), help="most that a row may take in all")
    parser.add_argument(
        "--no-cache", dest="cached", action="store_false", help="neither read scores from a cache nor keep them"
    )
    parser.add_argument("--force", action="store_true", help="overwrite OUT instead of going on with it")
    parser.set_defaults(run=run)


def positive(kind: type) -> Any:
    """What reads an argument that is a number of this kind above 0."""

    def parse(text: str) -> Any:
        value = kind(text)
        if not 0 < value < float("inf"):
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {'whole ' if kind is int else ''}number"
    return parse


def run(args: argparse.Namespace) -> int:
    """Scores IN, or says what that would cost.

    Returns:
        The exit status: 0 where every row has a score, or can be asked for one, 3 where some have none, 130 or 143
        after an interruption.

    Raises:
        RewardstackError: what was scored before is in OUT.
    """
    # OUT has whole rows.
    source = Source(args.input, None if args.output else SAMPLE)
    routes = route_table(Settings.from_env())
    options = Options(routes, args.chunk_size, args.data_source, args.on_error, args.timeout, args.cached)
    if args.dry_run:
        return show_cost(source, options)
    if args.table:
        return show_table(source, options)
    return Run(source, args.output, options).execute(args.force)
