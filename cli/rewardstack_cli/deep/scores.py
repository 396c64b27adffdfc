"""What samples are worth: by either way, and once more from the cache."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from rewardstack.errors import RewardstackError
from rewardstack.score import Request, Score
from rewardstack_cli.deep.samples import CLOSE, Sample, ServiceName, samples
from rewardstack_cli.deep.stack import LeftOut, Stack, require, require_right, wait_until

CACHE_SECONDS = 60.0
"""Until a score is in the cache: what is new is stored in the background, and a Redis that failed rests for 10."""


async def through_the_reward_server(service: ServiceName, stack: Stack) -> str:
    """With nothing but REWARD_SERVER_URL set, a service scores."""
    return await _right(stack, service, direct=False)


async def code(stack: Stack) -> str:
    """Programs are run, and a wrong one is told from a right one."""
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
    return "worth " + ", ".join(f"{one.value:g}" for one in scores)


async def directly(service: ServiceName, stack: Stack) -> str:
    """With its own address set, a service scores as well."""
    return await _right(stack, service, direct=True)


async def _right(stack: Stack, service: ServiceName, *, direct: bool) -> str:
    stack.servers(service)
    some = samples(service)
    scores = await stack.score(some, direct=direct)
    require_right(some, scores)
    return "worth " + ", ".join(f"{one.value:g}" for one in scores)


async def both_ways_agree(stack: Stack) -> str:
    """A sample is worth the same asked directly and through the reward server."""
    if stack.services == ["rules"]:
        raise LeftOut("there is one way only: neither LLM_JUDGE_SERVER_URL nor EMBEDDING_SERVER_URL is set")
    some = [sample for sample in samples(*stack.services) if sample.exact]
    # One way must not read from the cache what the other has put there.
    uncached = replace(stack, settings=replace(stack.settings, cache_url=""))
    ways = [await uncached.score(some, direct=direct) for direct in (True, False)]
    for scores in ways:
        require_right(some, scores)
    apart = max(abs((one.value or 0) - (other.value or 0)) for one, other in zip(*ways, strict=True))
    require(apart <= CLOSE, f"apart by {apart:g}")
    return f"at most {apart:.1g} apart"


async def cache(stack: Stack) -> str:
    """What was scored once is read from the stack's cache afterwards, with the same values."""
    _require_cache(stack)
    return await _remembered(stack, direct=False)


async def cache_of_a_trainer(stack: Stack) -> str:
    """A trainer that scores directly and may reach the cache (REWARD_CACHE_URL) has it as well."""
    _require_cache(stack)
    if not stack.settings.cache_url:
        raise LeftOut("REWARD_CACHE_URL is not set")
    return await _remembered(stack, direct=True)


def _require_cache(stack: Stack) -> None:
    if not stack.settings.cache_on:
        raise LeftOut("REWARD_CACHE is off")


async def _remembered(stack: Stack, *, direct: bool) -> str:
    some = [sample for sample in samples(*stack.services) if sample.kept]
    first = await stack.score(some, direct=direct)
    require_right(some, first)
    require(not any(one.cached for one in first), "new samples are said to come from the cache")
    await until_remembered(stack, some, first, direct=direct)
    return f"{len(some)} of {len(some)} read from it"


async def until_remembered(stack: Stack, some: Sequence[Sample], last: list[Score], *, direct: bool = False) -> None:
    """Returns when samples come from the cache, worth what they were worth before.

    Args:
        stack: that scores them.
        some: the samples.
        last: their scores.
        direct: as `Stack.score` has it.

    Raises:
        Unmet: they do not.
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
