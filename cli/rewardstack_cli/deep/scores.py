"""Checks of scores that come from the services directly, through the reward server, and from the cache."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from rewardstack.errors import RewardstackError
from rewardstack.score import Request, Score
from rewardstack_cli.deep.samples import CLOSE, Sample, ServiceName, samples
from rewardstack_cli.deep.stack import LeftOut, Stack, require, require_right, wait_until

CACHE_SECONDS = 60.0
"""Maximum seconds until a score is in the cache: writes run in the background, and failures are retried after 10 s."""


async def through_the_reward_server(service: ServiceName, stack: Stack) -> str:
    """Check that a service scores with only REWARD_SERVER_URL set."""
    return await _right(stack, service, direct=False)


async def code(stack: Stack) -> str:
    """Check that programs are run, and that a right and a wrong one get different scores."""
    mark = uuid.uuid4().hex
    tests = {"inputs": ["6 7\n"], "outputs": ["42\n"]}
    answers = [f"```python\na, b = map(int, input().split())\nprint(a {sign} b)  # {mark}\n```" for sign in "*+"]
    some = [
        Sample(Request("code", answer, tests), right, right, "rules")
        for answer, right in zip(answers, (1, 0), strict=True)
    ]
    try:
        scores = await stack.score(some, direct=False)
    except RewardstackError as error:
        if "CODE=on" not in str(error):
            raise
        raise LeftOut("the reward server runs no programs (CODE)") from None
    require_right(some, scores)
    return "scores: " + ", ".join(f"{one.value:g}" for one in scores)


async def directly(service: ServiceName, stack: Stack) -> str:
    """Check that a service scores with its own URL set."""
    return await _right(stack, service, direct=True)


async def _right(stack: Stack, service: ServiceName, *, direct: bool) -> str:
    stack.servers(service)
    some = samples(service)
    scores = await stack.score(some, direct=direct)
    require_right(some, scores)
    return "scores: " + ", ".join(f"{one.value:g}" for one in scores)


async def same_scores(stack: Stack) -> str:
    """Check that a sample has the same score directly and through the reward server."""
    if stack.services == ["rules"]:
        raise LeftOut("there is only one path: no URL of a model server is set")
    some = [sample for sample in samples(*stack.services) if sample.exact]
    # Without the cache, so that one path does not read the other's scores.
    uncached = replace(stack, settings=replace(stack.settings, cache_url=""))
    paths = [await uncached.score(some, direct=direct) for direct in (True, False)]
    for scores in paths:
        require_right(some, scores)
    apart = max(abs((one.value or 0) - (other.value or 0)) for one, other in zip(*paths, strict=True))
    require(apart <= CLOSE, f"the scores differ by {apart:g}")
    return f"at most {apart:.1g} apart"


async def cache(stack: Stack) -> str:
    """Check that a repeated sample's score is read from the stack's cache, with the same value."""
    _require_cache(stack)
    return await _check_cached(stack, direct=False)


async def trainer_cache(stack: Stack) -> str:
    """Check that a trainer that scores directly reads the stack's cache (REWARD_CACHE_URL)."""
    _require_cache(stack)
    if not stack.settings.cache_url:
        raise LeftOut("REWARD_CACHE_URL is not set")
    return await _check_cached(stack, direct=True)


def _require_cache(stack: Stack) -> None:
    if not stack.settings.is_cache_enabled:
        raise LeftOut("REWARD_CACHE is off")


async def _check_cached(stack: Stack, *, direct: bool) -> str:
    some = [sample for sample in samples(*stack.services) if sample.cacheable]
    first = await stack.score(some, direct=direct)
    require_right(some, first)
    require(not any(one.cached for one in first), "new samples are reported as cached")
    await wait_until_cached(stack, some, first, direct=direct)
    return f"{len(some)} of {len(some)} read from it"


async def wait_until_cached(stack: Stack, some: Sequence[Sample], last: list[Score], *, direct: bool = False) -> None:
    """Wait until all samples come from the cache, with the same scores as before.

    Args:
        stack: stack that scores the samples.
        some: the samples.
        last: the scores of the samples so far.
        direct: whether to bypass the reward server, as in `Stack.score`.

    Raises:
        Unmet: not all scores come from the cache within `CACHE_SECONDS`, or a cached value differs.
    """
    before = last

    async def all_cached() -> bool:
        nonlocal before, last
        again = await stack.score(some, direct=direct)
        if all(one.status == "ok" for one in again):
            before, last = last, again
        return all(one.cached for one in again)

    sources = ", ".join(dict.fromkeys(sample.request.data_source for sample in some))
    await wait_until(all_cached, CACHE_SECONDS, f"all of {sources} are read from the cache")
    require([one.value for one in before] == [one.value for one in last], "the cache holds other values")
