"""`rewardstack explain`: show how one sample gets its score.

It prints the score as a formula of its parts, and the facts behind each part; with -v, also all steps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rich.text import Text

from rewardstack.client import explain
from rewardstack.core.steps import Explanation, Step
from rewardstack.errors import RequestError
from rewardstack.score import ON_ERROR, Request
from rewardstack.settings import Settings
from rewardstack_cli.console import count_rows, plain_text, print_json, printable, put, say
from rewardstack_cli.data.rows import SAMPLE_FIELDS, Row
from rewardstack_cli.data.source import Source
from rewardstack_cli.explanation_summary import summarize
from rewardstack_cli.options import row_to_request
from rewardstack_cli.score import positive_number

MAX_INLINE = 100
"""Maximum characters of a text next to its name; a longer text, or one with line breaks, is shown below the name."""
BAR = "\N{BOX DRAWINGS LIGHT VERTICAL} "
SCORED = ("ok", "fallback")
"""The statuses of samples that have a score."""


def add_parser(commands: Any) -> None:
    """Add the parser of `explain` to the subcommands."""
    parser = commands.add_parser("explain", help="show how one sample gets its score", description=__doc__)
    parser.add_argument("input", metavar="IN", nargs="?", type=Path, help="samples: .jsonl or .parquet")
    parser.add_argument("--row", metavar="N", type=positive_number(int), help="number of the row in IN, from 1")
    parser.add_argument("--solution", metavar="TEXT", help="the response, for a sample that is not in a file")
    parser.add_argument(
        "--ground-truth", metavar="TEXT", action="append", help="reference for --solution; repeat it for several"
    )
    parser.add_argument("--extra", metavar="JSON", help="extra_info for --solution, a JSON object")
    parser.add_argument("--data-source", metavar="NAME", help="data_source for --solution, or for a row that has none")
    parser.add_argument("--on-error", choices=ON_ERROR, help="what to do if there is no score")
    parser.add_argument("--timeout", metavar="SECONDS", type=positive_number(float), help="total time limit")
    parser.add_argument("--no-cache", dest="cached", action="store_false",
                        help="score the sample even if a cache has its score")  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="show all steps, with prompts and replies")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Explain the score of a sample.

    Returns:
        The exit status: 0 if the score is `ok` or `fallback`, 1 if it is `unscored` or `failed`, 2 if a field of
        the sample is wrong (`explanation.error`).

    Raises:
        RewardstackError: the sample cannot be read, no route matches its source, or a setting is invalid.
    """
    sample = _read_sample(args)
    explanation = asyncio.run(explain(sample, Settings.from_env(), on_error=args.on_error, limit=args.timeout))
    if args.json:
        print_json(explanation.record())
    else:
        _show(explanation, args.verbose)
    if explanation.error:
        return 2
    return 0 if explanation.score is not None and explanation.score.status in SCORED else 1


def _read_sample(args: argparse.Namespace) -> Request:
    """Return the sample that the arguments name.

    Raises:
        RequestError: the arguments name no sample or two samples, or the sample is malformed.
    """
    if (args.input is None) == (args.solution is None):
        raise RequestError("explain: give one sample, as IN --row N or as --data-source NAME --solution TEXT", "IN")
    if args.input is None:  # errors in these fields begin with "the command line, --solution"
        row = Row(Path("the command line"), "--solution", _command_line_fields(args))
    else:
        row = _read_row(args)
        if args.data_source is not None and row.fields.get("data_source") is not None:
            say("--data-source is not used: the row has a data_source")
    return row_to_request(row, args.data_source, args.cached)


def _read_row(args: argparse.Namespace) -> Row:
    if args.row is None or args.ground_truth is not None or args.extra is not None:
        raise RequestError("explain: IN needs --row N; --ground-truth and --extra are only for --solution", "--row")
    row = next(islice(Source(args.input, SAMPLE_FIELDS).rows(args.row - 1), 1), None)
    if row is None:
        raise RequestError(f"--row: {args.input} has fewer than {count_rows(args.row)}", "--row")
    return row


def _command_line_fields(args: argparse.Namespace) -> dict[str, Any]:
    if args.row is not None:
        raise RequestError("--row needs IN", "--row")
    if args.data_source is None:
        raise RequestError("--solution needs --data-source NAME; `rewardstack routes` lists them", "--data-source")
    try:
        extra = json.loads(args.extra) if args.extra else None
    except (ValueError, RecursionError) as error:
        raise RequestError(f"--extra: not JSON: {error}", "--extra") from error
    if not isinstance(extra, dict | None):
        raise RequestError(f"--extra: expected a JSON object, got {type(extra).__name__}", "--extra")
    return {"solution_str": args.solution, "ground_truth": args.ground_truth, "extra_info": extra}


def _show(explanation: Explanation, is_verbose: bool) -> None:
    headline, *lines = summarize(explanation)
    put(Text(_sanitize(headline), "bold"))
    for line in lines:
        put(Text(_sanitize(line)))
    for at, step in enumerate(explanation.steps if is_verbose else (), 1):
        _show_step(step, str(at))


def _show_step(step: Step, number: str) -> None:
    margin = "  " * number.count(".")
    title = Text(margin).append_text(plain_text(f"{number} {step.name}", "bold"))
    put(title.append(f"  {step.latency_ms:.1f} ms", "dim"))
    for line in _mapping_lines(step.record()["facts"], margin + "    "):
        put(Text(line))
    for at, substep in enumerate(step.steps, 1):
        _show_step(substep, f"{number}.{at}")


def _mapping_lines(mapping: Mapping[str, Any], margin: str) -> Iterator[str]:
    for name, value in mapping.items():
        yield from _fact_lines(printable(name), value, margin)


def _fact_lines(name: str, value: Any, margin: str) -> Iterator[str]:
    """Yield the lines of one fact.

    A mapping with the two fields `value` and `from` is a value with its origin: the origin is shown in parentheses
    after the name. Other mappings are indented below the name. Lists are shown item by item. Long texts, and texts with
    line breaks, are shown below the name.
    """
    if isinstance(value, Mapping) and value.keys() == {"value", "from"}:
        yield from _fact_lines(f"{name} ({printable(str(value['from']))})", value["value"], margin)
    elif isinstance(value, Mapping) and value:
        yield f"{margin}{name}:"
        yield from _mapping_lines(value, margin + "  ")
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for at, one in enumerate(value, 1):
            yield from _fact_lines(f"{name} {at} of {len(value)}" if len(value) > 1 else name, one, margin)
    elif isinstance(value, str) and (len(value) > MAX_INLINE or "\n" in value):
        yield f"{margin}{name}:"
        yield from (f"{margin}{BAR}{_sanitize(line)}" for line in value.split("\n"))
    else:
        yield f"{margin}{name}: {_sanitize(value) if isinstance(value, str) else json.dumps(value)}"


def _sanitize(line: str) -> str:
    """Replace characters that are not printable, as `printable` does, but do not collapse runs of spaces."""
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in line.expandtabs())
