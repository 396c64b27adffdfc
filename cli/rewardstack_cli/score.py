"""`rewardstack score`: score a file of samples; to continue an interrupted run, repeat the command without --force."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rewardstack.client import route_table
from rewardstack.errors import RequestError
from rewardstack.score import ON_ERROR
from rewardstack.settings import Settings
from rewardstack_cli.cost import show_cost
from rewardstack_cli.data.rows import SAMPLE_FIELDS
from rewardstack_cli.data.source import Source
from rewardstack_cli.options import Options, note_unused_data_source
from rewardstack_cli.run import Run
from rewardstack_cli.table import TABLE_ROWS, show_table

CHUNK_SIZE = 1024
"""Default number of rows in flight. A row is in flight from when it is sent until its score is written."""


def add_parser(commands: Any) -> None:
    """Add the parser of `score` to the subcommands."""
    parser = commands.add_parser("score", help="score a file of samples", description=__doc__)
    parser.add_argument("input", metavar="IN", type=Path, help="samples: .jsonl or .parquet")
    result = parser.add_mutually_exclusive_group(required=True)
    result.add_argument(
        "-o", "--output", metavar="OUT", type=Path, help="the same rows with their scores: .jsonl or .parquet"
    )
    result.add_argument("--table", action="store_true", help=f"print a table instead (at most {TABLE_ROWS} rows)")
    result.add_argument("--dry-run", action="store_true", help="print the estimated cost; nothing is scored or written")
    parser.add_argument("--data-source", metavar="NAME", help="data_source of rows that have none")
    parser.add_argument(
        "--on-error", choices=ON_ERROR, help="what to do if a row has no score (default: the on_error of its route)"
    )
    parser.add_argument("--chunk-size", metavar="ROWS", type=positive_number(int), default=CHUNK_SIZE,
                        help="rows in flight; after SIGKILL, the next run scores them again (%(default)s)")  # fmt: skip
    parser.add_argument("--timeout", metavar="SECONDS", type=positive_number(float), help="total time limit of a row")
    parser.add_argument("--no-cache", dest="cached", action="store_false", help="do not read or write cached scores")
    rerun = parser.add_mutually_exclusive_group()
    rerun.add_argument("--force", action="store_true", help="overwrite OUT instead of continuing it")
    rerun.add_argument("--retry-failed", action="store_true",
                       help="continue OUT, and score again its rows that are failed or unscored")  # fmt: skip
    parser.set_defaults(run=run)


def positive_number(kind: type, or_zero: bool = False) -> Any:
    """Return a parser for arguments that are positive numbers.

    Args:
        kind: `int` or `float`.
        or_zero: whether the argument may be 0.
    """
    expected = f"a positive {'whole ' if kind is int else ''}number{' or 0' if or_zero else ''}"

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = -1
        if not (0 < value < float("inf") or (or_zero and value == 0)):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return parse


def run(args: argparse.Namespace) -> int:
    """Score the rows of IN, or print the estimated cost of scoring them.

    Returns:
        The exit status: 0 if every row has a score (status `ok` or `fallback`), else 3. With `--table`, 0 only if every
        row is `ok`; with `--dry-run`, 0 if every row can be scored. 130 or 143 after an interruption.

    Raises:
        RewardstackError: the run failed; finished scores are in OUT, or in `OUT.partial` if OUT is parquet.
    """
    if args.retry_failed and args.output is None:
        raise RequestError("--retry-failed needs -o OUT, the file with the rows to score again", "--retry-failed")
    # With -o, read all columns of IN, because OUT contains them. Without -o, read only the columns that scoring needs.
    source = Source(args.input, None if args.output else SAMPLE_FIELDS)
    routes = route_table(Settings.from_env())
    options = Options(routes, args.chunk_size, args.data_source, args.on_error, args.timeout, args.cached)
    note_unused_data_source(source.rows(), args.data_source)
    if args.dry_run:
        return show_cost(source.rows(), source.path, options)
    if args.table:
        return show_table(source, options)
    return Run(source, args.output, options).execute(start_over=args.force, retry=args.retry_failed)
