"""`rewardstack prepare`: convert a data set to parquet for verl, with references and scoring options in the rows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rewardstack.errors import RequestError
from rewardstack_cli.console import Grid, count_rows, plain_text, print_json, put
from rewardstack_cli.data import parquet
from rewardstack_cli.recipes import gsm8k, math500_mia, output

RECIPES: tuple[Any, ...] = (math500_mia, gsm8k)
"""Modules with `NAME`, `HUB`, `TEST_SHARE_HELP`, `add_arguments` and `prepare`.

The help of a recipe is the text after the colon in the first line of its docstring.
"""
TEST_SHARE = 0.1
"""Default of `--test-share`."""


def add_parser(commands: Any) -> None:
    """Add the parser of `prepare`, with a subcommand for each recipe."""
    parser = commands.add_parser("prepare", help="convert a data set to training data for verl", description=__doc__)
    recipes = parser.add_subparsers(metavar="RECIPE", required=True)
    for recipe in RECIPES:
        command = recipes.add_parser(recipe.NAME, help=recipe.__doc__.partition(": ")[2].partition("\n")[0])
        command.description = recipe.__doc__
        command.add_argument(
            "input", metavar="INPUT", nargs="?", default=recipe.HUB,
            help="a file (.jsonl, .json, .parquet), a folder of them, or a name on the Hugging Face Hub (%(default)s)",
        )  # fmt: skip
        command.add_argument(
            "-o", "--output", metavar="FOLDER", type=Path, required=True, help="where to write parquet"
        )
        command.add_argument(
            "--seed", metavar="N", type=int, default=0,
            help="seed of the random choices; the same input, options and seed give identical files (%(default)s)",
        )  # fmt: skip
        command.add_argument(
            "--test-share", metavar="SHARE", type=parse_share, default=TEST_SHARE,
            help=f"{recipe.TEST_SHARE_HELP}; from 0 to below 1 (%(default)s)",
        )  # fmt: skip
        command.add_argument("--json", action="store_true", help="print the report as JSON")
        recipe.add_arguments(command)
        command.set_defaults(run=run, recipe=recipe)


def parse_share(text: str) -> float:
    """Parse a share, from 0 to below 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to below 1, got {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    """Read the data set, write the rows, and print the report.

    Returns:
        The exit status, 0.

    Raises:
        RewardstackError: the input cannot be used, an option is wrong, or no rows are left to train on.
    """
    parquet.require_pyarrow()
    prepared = args.recipe.prepare(args)
    if not prepared.splits["train"]:
        raise RequestError(f"INPUT: no rows of {args.input} are left to train on", "INPUT")
    report = output.write(args.output, args.recipe.NAME, args.seed, prepared)
    if args.json:
        print_json(report)
    else:
        _show(args.output, report)
    return 0


def _show(folder: Path, report: dict[str, Any]) -> None:
    table = Grid("written", "rows", "labels", "sha256")
    for details in report["splits"].values():
        labels = ", ".join(f"{label} {count:,}" for label, count in details["labels"].items()) or "-"
        path = plain_text(str(folder / details["file"]))
        table.add_row(path, f"{details['rows']:,}", plain_text(labels), details["sha256"][:16])
    table.show()
    for source in report["sources"]:
        put(plain_text(f"from {source['name']}: {count_rows(source['rows'])}; seed {report['seed']}"))
        for name, digest in source["sha256"].items():
            put(plain_text(f"  {digest[:16]} {name}"))
    for reason, details in report["dropped"].items():
        put(plain_text(f"dropped {details['rows']:,}: {reason} (first: {details['first']})"))
    put(plain_text(f"this report as JSON, with full digests: {folder / output.REPORT}"))
