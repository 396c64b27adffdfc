"""List the deep checks in the order in which they run, and run one of them."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from rewardstack.errors import RewardstackError
from rewardstack_cli.deep.gateway import check_keys, check_paths
from rewardstack_cli.deep.jobs import check_job
from rewardstack_cli.deep.outage import Switch, check_judge_outage, skip_outage
from rewardstack_cli.deep.protocols import PROTOCOLS
from rewardstack_cli.deep.scores import (
    check_cache,
    check_code,
    check_directly,
    check_same_scores,
    check_through_reward_server,
    check_trainer_cache,
)
from rewardstack_cli.deep.stack import CheckFailedError, CheckSkippedError, Stack
from rewardstack_cli.probes.finding import ProbeError
from rewardstack_cli.probes.http import LOGS

OUTAGE = "outage"
"""Name of the outage check."""


class Check(NamedTuple):
    """A property that a stack must have.

    Args:
        run: checks the property and returns a result for display. It raises `CheckFailedError` if the stack does not
            have the property, and `CheckSkippedError` if the check does not apply to the stack.
        remedy: what to do if the check fails.
        switches: settings that switch the checked part of the reward server on. If one is set here, the check is not
            left out.
    """

    run: Callable[[Stack], Awaitable[str]]
    remedy: str = LOGS
    switches: tuple[str, ...] = ()


class CheckResult(NamedTuple):
    """The result of a check.

    Args:
        check: name of the check.
        result: `ok`, `left out` or `FAILED`.
        seconds: duration of the check in seconds.
        found: what the check found, for display.
        problem: the problem; None if there is none.
        is_missing: whether the problem is that the stack is without the part that is checked.
    """

    check: str
    result: str
    seconds: float
    found: str
    problem: ProbeError | None = None
    is_missing: bool = False


CHECKS: Mapping[str, Check] = {
    "paths": Check(
        check_paths,
        "another gateway answers, or the stack's gateway has an old configuration: run `make up` to rewrite it",
    ),
    "keys": Check(
        check_keys,
        "the service was started without a key: set its key in the environment of `make up`, and run `make up` again",
    ),
    **{name: Check(run) for name, run in PROTOCOLS.items()},
    "rules": Check(partial(check_through_reward_server, "rules")),
    "code": Check(
        check_code,
        f"check that the reward server's sandbox runs (docs/code.md); {LOGS}",
        ("CODE", "CODE_SANDBOX_URL", "SANDBOX_FUSION_URL"),
    ),
    "judge": Check(
        partial(check_through_reward_server, "judge"),
        f"check LLM_JUDGE_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "embedding": Check(
        partial(check_through_reward_server, "embedding"),
        f"check EMBEDDING_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "reward-model": Check(
        partial(check_through_reward_server, "reward-model"),
        f"check REWARD_MODEL_SERVER_URL in the environment of the reward server; {LOGS}",
    ),
    "judge-directly": Check(partial(check_directly, "judge")),
    "embedding-directly": Check(partial(check_directly, "embedding")),
    "reward-model-directly": Check(partial(check_directly, "reward-model")),
    "same-scores": Check(
        check_same_scores, "the reward server uses other model servers than this machine: set the same URLs on both"
    ),
    "cache": Check(
        check_cache, "check that the reward server's cache is up (`make status`) and not full (`make logs s=rules`)"
    ),
    "cache-directly": Check(
        check_trainer_cache,
        "check that REWARD_CACHE_URL is the URL of the stack's cache, and that the cache is not full",
    ),
    "jobs": Check(
        check_job,
        "check that the workers are up (`make status`), and look at their log (`make logs s=worker`)",
        ("REWARD_QUEUE_URL",),
    ),
    OUTAGE: Check(skip_outage),
}


def with_outage(stop: Switch, start: Switch) -> Mapping[str, Check]:
    """Return all checks; the outage check stops the judge with `stop`, and starts it again with `start`."""
    return {**CHECKS, OUTAGE: Check(partial(check_judge_outage, stop, start))}


async def run_check(name: str, check: Check, stack: Stack, required: Collection[str]) -> CheckResult:
    """Run a check and return its result.

    Args:
        name: name of the check.
        check: the check to run.
        stack: the stack to check.
        required: names of checks that must not be skipped.
    """
    started = time.monotonic()
    result, found, problem = "ok", "", None
    try:
        found = await check.run(stack)
    except CheckSkippedError as reason:
        result, found = "left out", str(reason)
        problem = _missing(name, check, found, required)
    except ProbeError as error:
        problem = error
    except (CheckFailedError, RewardstackError) as error:
        problem = ProbeError(str(error), check.remedy)
    except (LookupError, TypeError, ValueError) as error:
        problem = ProbeError(
            f"the reply could not be parsed: {error!r}",
            f"another service answers there, or the service is broken; {LOGS}",
        )
    is_missing = problem is not None and result == "left out"
    return CheckResult(name, "FAILED" if problem else result, time.monotonic() - started, found, problem, is_missing)


def _missing(name: str, check: Check, reason: str, required: Collection[str]) -> ProbeError | None:
    """Return the problem that a stack is without a part that this environment or `--require` asks for."""
    if name in required:
        remedy = "add what is missing to the stack, or remove the check from --require"
        return ProbeError(f"left out, although --require names it: {reason}", remedy)
    for variable in check.switches:
        if os.environ.get(variable, "off") not in ("", "off"):
            remedy = f"wait for the rollout (--wait SECONDS), or unset {variable} here"
            return ProbeError(f"{variable} is set, but still answered by a version without it: {reason}", remedy)
    return None
