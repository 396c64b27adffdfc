"""`python -m tests.end_to_end`: checks a running stack from outside, prints a line a check.

Keys come from the environment as for every client (REWARD_SERVER_API_KEY, LLM_JUDGE_SERVER_API_KEY,
EMBEDDING_SERVER_API_KEY); with REWARD_CACHE_URL the cache of a trainer that scores directly is checked too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

from rewardstack import RewardstackError
from tests.end_to_end.checks import CHECKS, health
from tests.end_to_end.outage import command, judge_down
from tests.end_to_end.stack import Stack, Unmet


def main(arguments: list[str] | None = None) -> int:
    """Runs every check; the exit status: 0 where all hold."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if bool(options.stop_judge) != bool(options.start_judge) or (options.stop_judge and not options.judge_url):
        parser.error("--stop-judge and --start-judge go together, and with --judge-url")
    stack = Stack(
        options.reward_url.rstrip("/"),
        options.judge_url.rstrip("/"),
        options.embedding_url.rstrip("/"),
        options.loading_seconds,
    )
    steps = {check.__name__: partial(check, stack) for check in CHECKS}
    if options.stop_judge:
        switches = command(options.stop_judge), command(options.start_judge)
        steps[judge_down.__name__] = partial(judge_down, stack, *switches)
    if not _holds(health.__name__, steps.pop(health.__name__)):
        print("the stack is not well, so nothing else was checked")
        return 1
    failed = [name for name, step in steps.items() if not _holds(name, step)]
    print(
        f"{len(steps) - len(failed)} of {len(steps)} further checks hold"
        + (f"; not: {', '.join(failed)}" if failed else "")
    )
    return 1 if failed else 0


def _holds(name: str, step: Callable[[], str]) -> bool:
    try:
        found = step()
    except (Unmet, RewardstackError) as error:
        print(f"FAIL  {name}: {error}", flush=True)
        return False
    print(f"ok    {name}: {found}", flush=True)
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.end_to_end", description=__doc__)
    parser.add_argument("--reward-url", required=True, metavar="URL", help="of the reward server")
    parser.add_argument("--judge-url", default="", metavar="URL", help="of the judge; without it the stack has none")
    parser.add_argument("--embedding-url", default="", metavar="URL", help="likewise")
    parser.add_argument("--stop-judge", default="", metavar="COMMAND", help="stops every replica; run without a shell")
    parser.add_argument("--start-judge", default="", metavar="COMMAND", help="starts them again")
    parser.add_argument("--loading-seconds", type=float, default=1800.0, help="for a judge to start (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
