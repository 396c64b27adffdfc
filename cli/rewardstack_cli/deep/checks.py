"""Every deep check by its name, in the order in which they are run, and what became of each."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from rewardstack.errors import RewardstackError
from rewardstack_cli.deep.gateway import keys, paths
from rewardstack_cli.deep.jobs import job
from rewardstack_cli.deep.outage import Switch, judge_down, untold
from rewardstack_cli.deep.protocols import PROTOCOLS
from rewardstack_cli.deep.scores import (
    both_ways_agree,
    cache,
    cache_of_a_trainer,
    code,
    directly,
    through_the_reward_server,
)
from rewardstack_cli.deep.stack import LeftOut, Stack, Unmet
from rewardstack_cli.probes.finding import Trouble
from rewardstack_cli.probes.http import LOGS

OUTAGE = "outage"


class Check(NamedTuple):
    """Something that must hold.

    Args:
        run: says what it found, in words; raises `Unmet` where it does not hold, `LeftOut` where the stack lacks it.
        remedy: what to do where it does not hold.
    """

    run: Callable[[Stack], Awaitable[str]]
    remedy: str = LOGS


class CheckResult(NamedTuple):
    """What became of a check.

    Args:
        check: its name.
        result: `ok`, `left out` or `FAILED`.
        seconds: that it took.
        found: in words.
        trouble: what is wrong; None where nothing is.
    """

    check: str
    result: str
    seconds: float
    found: str
    trouble: Trouble | None = None


CHECKS: Mapping[str, Check] = {
    "paths": Check(paths, "it is another gateway, or an old configuration of it: `make up` writes it anew"),
    "keys": Check(keys, "the server was started without this key: set it where the stack is started, then `make up`"),
    **{name: Check(run) for name, run in PROTOCOLS.items()},
    "rules": Check(partial(through_the_reward_server, "rules")),
    "code": Check(code, f"does its sandbox run (docs/code.md)? {LOGS}"),
    "judge": Check(
        partial(through_the_reward_server, "judge"),
        f"does the reward server know the judge (its own LLM_JUDGE_SERVER_URL)? {LOGS}",
    ),
    "embedding": Check(
        partial(through_the_reward_server, "embedding"),
        f"does the reward server know the embedding server (its own EMBEDDING_SERVER_URL)? {LOGS}",
    ),
    "judge-directly": Check(partial(directly, "judge")),
    "embedding-directly": Check(partial(directly, "embedding")),
    "ways-agree": Check(both_ways_agree, "the reward server asks other model servers than this machine does"),
    "cache": Check(cache, "is the reward server's cache up (`make status`), and has it room (`make logs s=rules`)?"),
    "cache-directly": Check(cache_of_a_trainer, "does REWARD_CACHE_URL name the stack's cache, and has it room?"),
    "jobs": Check(job, "are the workers up (`make status`)? look at their log (`make logs s=worker`)"),
    OUTAGE: Check(untold),
}


def with_outage(stop: Switch, start: Switch) -> Mapping[str, Check]:
    """All checks, an outage of the judge among them, which these commands bring about and end."""
    return {**CHECKS, OUTAGE: Check(partial(judge_down, stop, start))}


async def run_check(name: str, check: Check, stack: Stack, required: Collection[str]) -> CheckResult:
    """What becomes of a check.

    Args:
        name: of it.
        check: that is run.
        stack: that is checked.
        required: names of those that the stack must not lack.
    """
    started = time.monotonic()
    result, found, trouble = "ok", "", None
    try:
        found = await check.run(stack)
    except LeftOut as reason:
        result, found = "left out", str(reason)
        if name in required:
            trouble = Trouble(f"it is left out: {reason}", "add it to the stack, or take it off --require")
    except Trouble as error:
        trouble = error
    except (Unmet, RewardstackError) as error:
        trouble = Trouble(str(error), check.remedy)
    except (LookupError, TypeError, ValueError) as error:
        trouble = Trouble(f"an unreadable answer: {error!r}", f"it is another service, or a faulty one; {LOGS}")
    return CheckResult(name, "FAILED" if trouble else result, time.monotonic() - started, found, trouble)
