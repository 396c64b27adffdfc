"""The table of deep checks, in the order in which they run, and the result of each."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from rewardstack.errors import RewardstackError
from rewardstack_cli.deep.gateway import keys, paths
from rewardstack_cli.deep.jobs import job
from rewardstack_cli.deep.outage import Switch, judge_down, no_outage
from rewardstack_cli.deep.protocols import PROTOCOLS
from rewardstack_cli.deep.scores import (
    cache,
    code,
    directly,
    same_scores,
    through_the_reward_server,
    trainer_cache,
)
from rewardstack_cli.deep.stack import LeftOut, Stack, Unmet
from rewardstack_cli.probes.finding import ProbeError
from rewardstack_cli.probes.http import LOGS

OUTAGE = "outage"
"""Name of the check of an outage."""


class Check(NamedTuple):
    """A property that a stack must have.

    Args:
        run: checks the property and returns what it found; raises `Unmet` if the property does not hold, and `LeftOut`
            if the stack lacks what would be checked.
        remedy: what to do if the check fails.
    """

    run: Callable[[Stack], Awaitable[str]]
    remedy: str = LOGS


class CheckResult(NamedTuple):
    """The result of a check.

    Args:
        check: name of the check.
        result: `ok`, `left out` or `FAILED`.
        seconds: duration of the check in seconds.
        found: what the check found.
        problem: what is wrong; None if nothing is.
    """

    check: str
    result: str
    seconds: float
    found: str
    problem: ProbeError | None = None


CHECKS: Mapping[str, Check] = {
    "paths": Check(
        paths, "another gateway answers, or the stack's gateway has an old configuration: run `make up` to rewrite it"
    ),
    "keys": Check(
        keys, "the server was started without this key: set it in the environment of `make up`, then run that"
    ),
    **{name: Check(run) for name, run in PROTOCOLS.items()},
    "rules": Check(partial(through_the_reward_server, "rules")),
    "code": Check(code, f"check that the reward server's sandbox runs (docs/code.md); {LOGS}"),
    "judge": Check(
        partial(through_the_reward_server, "judge"),
        f"check LLM_JUDGE_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "embedding": Check(
        partial(through_the_reward_server, "embedding"),
        f"check EMBEDDING_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "reward-model": Check(
        partial(through_the_reward_server, "reward-model"),
        f"check REWARD_MODEL_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "judge-directly": Check(partial(directly, "judge")),
    "embedding-directly": Check(partial(directly, "embedding")),
    "reward-model-directly": Check(partial(directly, "reward-model")),
    "same-scores": Check(
        same_scores, "the reward server uses other model servers than this machine: set the same URLs on both"
    ),
    "cache": Check(
        cache, "check that the reward server's cache is up (`make status`) and not full (`make logs s=rules`)"
    ),
    "cache-directly": Check(
        trainer_cache, "check that REWARD_CACHE_URL is the URL of the stack's cache, and that the cache is not full"
    ),
    "jobs": Check(job, "check that the workers are up (`make status`), and look at their log (`make logs s=worker`)"),
    OUTAGE: Check(no_outage),
}


def with_outage(stop: Switch, start: Switch) -> Mapping[str, Check]:
    """Return all checks, including an outage: `stop` stops the judge, and `start` starts it again."""
    return {**CHECKS, OUTAGE: Check(partial(judge_down, stop, start))}


async def run_check(name: str, check: Check, stack: Stack, required: Collection[str]) -> CheckResult:
    """Run a check and return its result.

    Args:
        name: name of the check.
        check: the check to run.
        stack: the stack to check.
        required: names of checks that must not be left out.
    """
    started = time.monotonic()
    result, found, problem = "ok", "", None
    try:
        found = await check.run(stack)
    except LeftOut as reason:
        result, found = "left out", str(reason)
        if name in required:
            problem = ProbeError(
                f"it is left out: {reason}", "add what is missing to the stack, or remove the check from --require"
            )
    except ProbeError as error:
        problem = error
    except (Unmet, RewardstackError) as error:
        problem = ProbeError(str(error), check.remedy)
    except (LookupError, TypeError, ValueError) as error:
        problem = ProbeError(
            f"the reply could not be parsed: {error!r}",
            f"another service answers there, or the service is broken; {LOGS}",
        )
    return CheckResult(name, "FAILED" if problem else result, time.monotonic() - started, found, problem)
