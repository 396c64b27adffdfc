"""`rewardstack submit`: score a file as a job of the reward server, and fetch the scores."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import Any

from rewardstack.errors import RequestError
from rewardstack_cli.console import out, plain_text, say
from rewardstack_cli.data.source import Source, check_output
from rewardstack_cli.jobs.job_file import JobFile
from rewardstack_cli.jobs.scoring import JobScoring
from rewardstack_cli.options import note_unused_data_source
from rewardstack_cli.run import Run


def add_parser(commands: Any) -> None:
    """Add the parser of `submit` to the subcommands."""
    parser = commands.add_parser("submit", help="score a file as a job of the reward server", description=__doc__)
    parser.add_argument("input", metavar="IN", type=Path, help="samples: .jsonl or .parquet")
    parser.add_argument("--wait", action="store_true", help="fetch the scores as they come; needs -o")
    parser.add_argument(
        "-o", "--output", metavar="OUT", type=Path, help="the same rows with their scores: .jsonl or .parquet"
    )
    parser.add_argument("--data-source", metavar="NAME", help="data_source of rows that have none")
    parser.add_argument("--no-cache", dest="cached", action="store_false", help="do not read or write cached scores")
    parser.add_argument("--force", action="store_true", help="submit a new job and overwrite OUT")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Submit IN as a job, unless it already has one; with `--wait`, write its scores to OUT.

    Returns:
        The exit status: without `--wait`, 0. With `--wait`, 0 if every row has a score, else 3; 130 or 143 after an
        interruption, which does not affect the job.

    Raises:
        RewardstackError: the run failed; fetched scores are in OUT, or in `OUT.partial` if OUT is parquet.
    """
    if args.wait and args.output is None:
        raise RequestError("--wait needs -o OUT, the file for the scores", "-o")
    if args.output is not None:
        check_output(args.output, "-o")
    source, job_file = Source(args.input), JobFile(args.output)
    scoring = JobScoring(source, args.data_source, job_file, args.force, args.cached)
    note_unused_data_source(source.rows(), args.data_source)
    if not args.wait:
        job_id = asyncio.run(scoring.submit())
        out.print(plain_text(job_id))
        say(f"submitted; `rewardstack submit {args.input} --wait -o {args.output or 'OUT'}` fetches the scores")
        return 0
    status = Run(source, args.output, scoring).execute(start_over=args.force)
    if status < 128:
        job_file.remove()
    return status
