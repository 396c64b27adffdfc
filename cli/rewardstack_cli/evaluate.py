"""`rewardstack evaluate`: compare scores with labels, to know how good a judge or a rule is before training with it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardstack.client import route_table
from rewardstack.errors import RequestError
from rewardstack.settings import Settings
from rewardstack_cli.data.rows import ADDED, SAMPLE
from rewardstack_cli.data.source import Source
from rewardstack_cli.evaluation import labels
from rewardstack_cli.evaluation.labels import Labeled
from rewardstack_cli.evaluation.page import page
from rewardstack_cli.evaluation.report import Setting, Terms, make_report
from rewardstack_cli.evaluation.scoring import (
    Interrupted,
    injections,
    read_options,
    scores_of,
    shown,
    with_injection,
    with_options,
)
from rewardstack_cli.evaluation.terminal import show_report
from rewardstack_cli.options import Options, sample_of
from rewardstack_cli.progress import NOT_ALL_SCORED
from rewardstack_cli.score import CHUNK_SIZE, positive

MOST_BINS = 1000
"""Maximum of `--bins`."""


def add_parser(commands: Any) -> None:
    """Add the parser of `evaluate` to the subcommands."""
    parser = commands.add_parser("evaluate", help="compare scores with labels", description=__doc__)
    parser.add_argument("input", metavar="FILE", type=Path, help="samples with labels: .jsonl or .parquet")
    parser.add_argument("--label", metavar="FIELD", default="label",
                        help=f"whether a response is right: {labels.KINDS} (%(default)s)")  # fmt: skip
    parser.add_argument("--threshold", metavar="VALUE", type=float, default=0.5,
                        help="a score, or label, of at least this counts as right (%(default)s)")  # fmt: skip
    parser.add_argument("--by", metavar="FIELD", default="data_source", help="group by this field (%(default)s)")
    parser.add_argument("--bins", metavar="N", type=positive(int), default=10, help="calibration bins (%(default)s)")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], dest="options",
                        help="an option for every row; repeat for more options")  # fmt: skip
    parser.add_argument("--against", metavar="NAME=VALUE", action="append", default=[],
                        help="an option of a second setting, which is scored and compared with the first")  # fmt: skip
    parser.add_argument("--injections", action="store_true",
                        help="score every wrong response again with each prompt injection of the suite")  # fmt: skip
    parser.add_argument("--disagreements", metavar="N", type=int, default=20, help="most to list (%(default)s)")
    parser.add_argument("--json", metavar="OUT", type=Path, help="write the report as JSON")
    parser.add_argument("--html", metavar="OUT", type=Path, help="write the report as a page with plots")
    parser.add_argument("--scored", action="store_true", help="FILE is an OUT of `score`; nothing is scored again")
    parser.add_argument("--data-source", metavar="NAME", help="for rows that have no data_source")
    parser.add_argument("--timeout", metavar="SECONDS", type=positive(float), help="total time limit of a row")
    parser.add_argument("--no-cache", dest="cached", action="store_false", help="do not read or write cached scores")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score FILE, compare the scores with its labels and write the report.

    Returns:
        The exit status: 0 if every row has a score, also with each injection; 3 if a score is missing; 130 or 143
        after an interruption.

    Raises:
        RewardstackError: a row, a label, an argument or a setting is wrong.
    """
    _check(args)
    source = Source(args.input, (*SAMPLE, *ADDED, args.label, args.by))
    rows = labels.read(source.rows(), args.label, args.by, args.threshold, args.data_source)
    try:
        settings = _read(rows, args.data_source) if args.scored else asyncio.run(_score(rows, args))
    except Interrupted as interruption:
        return 128 + interruption.signal
    terms = Terms(str(args.input), args.label, args.by, args.threshold, args.bins, args.disagreements)
    report = make_report(rows, settings, terms)
    show_report(report)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="ascii")
    if args.html:
        args.html.write_text(page(report), encoding="utf-8", errors="backslashreplace")
    scores = (score for setting in settings for some in (setting.scores, *setting.injected.values()) for score in some)
    return NOT_ALL_SCORED if any(score.status in ("unscored", "failed") for score in scores) else 0


def _check(args: argparse.Namespace) -> None:
    """Raise `RequestError` if the arguments contradict each other.

    Raises:
        RequestError: an argument is invalid, or contradicts another one.
    """
    asking = {"--set": args.options, "--against": args.against, "--injections": args.injections}
    if args.scored and any(asking.values()):
        names = ", ".join(name for name, is_set in asking.items() if is_set)
        raise RequestError(f"--scored: FILE already has scores, so {names} has no effect; drop one of them", "--scored")
    if not -float("inf") < args.threshold < float("inf"):
        raise RequestError("--threshold: expected a number", "--threshold")
    if args.bins > MOST_BINS:
        raise RequestError(f"--bins: at most {MOST_BINS}", "--bins")
    if args.disagreements < 0:
        raise RequestError("--disagreements: expected 0 or more", "--disagreements")
    for name, out in {"--json": args.json, "--html": args.html}.items():
        if out is not None and out.exists() and args.input.exists() and out.samefile(args.input):
            raise RequestError(f"{name}: {out} is FILE itself; name another file", name)


def _read(rows: Sequence[Labeled], data_source: str | None) -> list[Setting]:
    for row in rows:
        sample_of(row.row, data_source, cached=True)
    return [Setting("scored", {}, [labels.score_of(row.row) for row in rows], {})]


async def _score(rows: Sequence[Labeled], args: argparse.Namespace) -> list[Setting]:
    settings = {"set": read_options(args.options, "--set")}
    if args.against:
        settings["against"] = read_options(args.against, "--against")
    # Policy "none": report a row without a score as such, whatever the policy of its route.
    options = Options(route_table(Settings.from_env()), CHUNK_SIZE, args.data_source, "none", args.timeout, args.cached)
    for row in rows:
        options.request(row.row)
    return [await _setting(name, rows, one, options, args.injections) for name, one in settings.items()]


async def _setting(
    name: str, rows: Sequence[Labeled], overrides: Mapping[str, Any], options: Options, injected: bool
) -> Setting:
    """Score all rows with the options of a setting and, if `injected`, rows labeled wrong with each injection."""
    here = [with_options(row.row, overrides) for row in rows]
    scores = await scores_of(here, len(here), options)
    wrong = [one for row, one in zip(rows, here, strict=True) if not row.right]
    suite = injections() if injected and wrong else {}
    attacked = (with_injection(row, text) for text in suite.values() for row in wrong)
    found = await scores_of(attacked, len(suite) * len(wrong), options) if suite else []
    parts = {case: found[at * len(wrong) : (at + 1) * len(wrong)] for at, case in enumerate(suite)}
    return Setting(name, shown(overrides), scores, parts)
