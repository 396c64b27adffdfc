"""`rewardstack evaluate`: compare scores with labels, to know how good a judge or a rule is before training with it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from rewardstack.client import route_table
from rewardstack.errors import RequestError
from rewardstack.settings import Settings
from rewardstack_cli.console import plain_text, put
from rewardstack_cli.cost import show_cost
from rewardstack_cli.data.rows import SAMPLE_FIELDS, SCORE_FIELDS
from rewardstack_cli.data.source import PARQUET, Source, check_output
from rewardstack_cli.evaluation import labels
from rewardstack_cli.evaluation.high_rewards import describe, is_sample_log
from rewardstack_cli.evaluation.labels import LabeledRow
from rewardstack_cli.evaluation.page import render_page
from rewardstack_cli.evaluation.report import Report, ReportOptions, Result
from rewardstack_cli.evaluation.scoring import (
    Interrupted,
    Read,
    Setting,
    add_scores,
    load_injections,
    mask_secrets,
    read_options,
)
from rewardstack_cli.evaluation.terminal import show_report
from rewardstack_cli.options import Options, note_unused_data_source, row_to_request
from rewardstack_cli.progress import NOT_ALL_SCORED
from rewardstack_cli.score import CHUNK_SIZE, positive_number

MAX_BINS = 1000
"""Maximum of `--bins`."""


def add_parser(commands: Any) -> None:
    """Add the parser of `evaluate` to the subcommands."""
    parser = commands.add_parser("evaluate", help="compare scores with labels", description=__doc__)
    parser.add_argument("input", metavar="IN", type=Path, help="samples with labels: .jsonl or .parquet")
    parser.add_argument("--label", metavar="FIELD", default="label",
                        help=f"field that says whether a response is right: {labels.KINDS} (%(default)s)")  # fmt: skip
    parser.add_argument("--threshold", metavar="VALUE", type=float, default=0.5,
                        help="a score, or label, of at least this counts as right (%(default)s)")  # fmt: skip
    parser.add_argument("--by", metavar="FIELD", default="data_source", help="group by this field (%(default)s)")
    parser.add_argument(
        "--bins", metavar="N", type=positive_number(int), default=10, help="number of calibration bins (%(default)s)"
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="options",
                        help="an option for every row; repeat for more options")  # fmt: skip
    parser.add_argument("--against", metavar="NAME=VALUE", action="append", default=[],
                        help="an option of a second setting; rows are scored with both, to compare them")  # fmt: skip
    parser.add_argument("--injections", action="store_true",
                        help="score each wrong response again with each of the built-in prompt injections")  # fmt: skip
    parser.add_argument(
        "--disagreements", metavar="N", type=int, default=20,
        help="maximum number of disagreements to list (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", metavar="OUT", type=Path, help="write the report as JSON")
    parser.add_argument("--html", metavar="OUT", type=Path, help="write the report as a page with plots")
    parser.add_argument("--dry-run", action="store_true", help="print the estimated cost; nothing is scored or written")
    parser.add_argument("--scored", action="store_true", help="use the scores in IN, an output file of `score`")
    parser.add_argument("--data-source", metavar="NAME", help="data_source of rows that have none")
    parser.add_argument("--timeout", metavar="SECONDS", type=positive_number(float), help="total time limit of a row")
    parser.add_argument("--no-cache", dest="cached", action="store_false", help="do not read or write cached scores")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score IN, compare the scores with its labels and write the report.

    If IN is a sample log (see `evaluation.high_rewards`), only describe the responses with high rewards.

    Returns:
        The exit status: 0 if every row has a score, else 3. With `--injections`, every row that was scored again with
        an injection must have a score, too. With `--dry-run`, 0 if every row is valid, else 3. For a sample log, 0.
        After an interruption, 130 or 143.

    Raises:
        RewardstackError: a row, a label, an argument or a setting is wrong.
    """
    _check_arguments(args)
    if _show_sample_log(args.input):
        return 0
    source = Source(args.input, (*SAMPLE_FIELDS, *SCORE_FIELDS, args.label, args.by))
    note_unused_data_source(source.rows(), args.data_source)
    options = ReportOptions(str(args.input), args.label, args.by, args.threshold, args.bins, args.disagreements)

    def read() -> Iterator[LabeledRow]:
        return labels.read(source.rows(), args.label, args.by, args.threshold, args.data_source)

    if args.scored:
        report = _report_scored_file(read, options, args.data_source)
    else:
        settings = _build_settings(args)
        if args.dry_run:
            rows = chain.from_iterable(setting.rows(read()) for setting in settings.values())
            return show_cost(rows, source.path, _build_options(args))
        try:
            report = _score_and_report(read, options, settings)
        except Interrupted as interruption:
            return 128 + interruption.signal
    _show(report.record(), args)
    return 0 if report.is_complete else NOT_ALL_SCORED


def _show(record: Mapping[str, Any], args: argparse.Namespace) -> None:
    show_report(record)
    if args.json:
        args.json.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="ascii")
    if args.html:
        args.html.write_text(render_page(record), encoding="utf-8", errors="backslashreplace")


def _show_sample_log(path: Path) -> bool:
    """Return whether `path` is a sample log; if it is, print which features correlate with high rewards."""
    if path.suffix == PARQUET or not is_sample_log(next((row.fields for row in Source(path).rows()), {})):
        return False
    for line in describe(row.fields for row in Source(path).rows()):
        put(plain_text(line))
    return True


def _check_arguments(args: argparse.Namespace) -> None:
    """Raise `RequestError` if an argument is invalid, or contradicts another one."""
    scoring_options = {"--set": args.options, "--against": args.against, "--injections": args.injections}
    scoring_options["--dry-run"] = args.dry_run
    if args.scored and any(scoring_options.values()):
        names = ", ".join(name for name, is_set in scoring_options.items() if is_set)
        raise RequestError(
            f"--scored: IN already has scores, so {names} has no effect; drop --scored, or these options", "--scored"
        )
    if not -float("inf") < args.threshold < float("inf"):
        raise RequestError("--threshold: expected a number", "--threshold")
    if args.bins > MAX_BINS:
        raise RequestError(f"--bins: at most {MAX_BINS}", "--bins")
    if args.disagreements < 0:
        raise RequestError("--disagreements: expected 0 or more", "--disagreements")
    for name, out in {"--json": args.json, "--html": args.html}.items():
        if out is None:
            continue
        check_output(out, name)
        if out.exists() and args.input.exists() and out.samefile(args.input):
            raise RequestError(f"{name}: {out} is IN itself; name another file", name)


def _report_scored_file(read: Read, options: ReportOptions, data_source: str | None) -> Report:
    """Return the report on the scores in a file."""
    report = Report(options, {"scored": {}})
    for row in read():
        row_to_request(row.row, data_source, cached=True)
        report.add(row, [Result(labels.parse_score(row.row))])
    return report


def _build_options(args: argparse.Namespace) -> Options:
    # The policy "none" overrides the policies of the routes, so that the report shows which rows have no score.
    return Options(route_table(Settings.from_env()), CHUNK_SIZE, args.data_source, "none", args.timeout, args.cached)


def _build_settings(args: argparse.Namespace) -> dict[str, Setting]:
    """Return the settings by name: `set` with the options of `--set`, and `against` with the options of `--against`.

    If `--against` is not used, there is only `set`.
    """
    suite = load_injections() if args.injections else {}
    overrides = {"set": read_options(args.options, "--set")}
    if args.against:
        overrides["against"] = read_options(args.against, "--against")
    return {name: Setting(one, suite, _build_options(args)) for name, one in overrides.items()}


def _score_and_report(read: Read, options: ReportOptions, settings: Mapping[str, Setting]) -> Report:
    """Check all rows, score them with these settings, and return the report."""
    rows = right = 0
    [first, *_] = settings.values()
    for row in read():
        first.scoring.request(row.row)
        rows, right = rows + 1, right + row.right
    report = Report(options, {name: mask_secrets(one.overrides) for name, one in settings.items()}, first.suite)
    total = sum(one.size(rows, right) for one in settings.values())
    asyncio.run(add_scores(report, read, [*settings.values()], total))
    return report
