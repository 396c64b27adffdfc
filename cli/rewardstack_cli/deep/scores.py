"""Check scores that come directly from a service, through the reward server, or from the cache."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.score import Request, Score
from rewardstack_cli.deep.samples import TOLERANCE, Sample, ServiceName, make_samples
from rewardstack_cli.deep.stack import CheckSkippedError, Stack, require, require_right, wait_until

CACHE_TIMEOUT = 60.0
"""Maximum seconds until a score is in the cache: writes run in the background, and a failed write is retried after
10 s."""


async def check_through_reward_server(service: ServiceName, stack: Stack) -> str:
    """Check that a service scores samples that are sent to the reward server."""
    return await _check_scores(stack, service, direct=False)


async def check_code(stack: Stack) -> str:
    """Check that the reward server runs programs: a right program scores 1, and a wrong program 0."""
    mark = uuid.uuid4().hex
    tests = {"inputs": ["6 7\n"], "outputs": ["42\n"]}
    answers = [f"```python\na, b = map(int, input().split())\nprint(a {sign} b)  # {mark}\n```" for sign in "*+"]
    samples = [
        Sample(Request("code", answer, tests), value, value, "rules")
        for answer, value in zip(answers, (1, 0), strict=True)
    ]
    try:
        scores = await stack.score(samples, direct=False)
    except RewardstackError as error:
        if not (isinstance(error, ConfigError) and error.field == "CODE"):
            raise
        raise CheckSkippedError("the reward server was started without CODE=on") from None
    require_right(samples, scores)
    return "scores: " + ", ".join(f"{one.value:g}" for one in scores)


async def check_directly(service: ServiceName, stack: Stack) -> str:
    """Check that a service scores samples that are sent to its own URL."""
    return await _check_scores(stack, service, direct=True)


async def _check_scores(stack: Stack, service: ServiceName, *, direct: bool) -> str:
    stack.servers(service)
    samples = make_samples(service)
    scores = await stack.score(samples, direct=direct)
    require_right(samples, scores)
    return "scores: " + ", ".join(f"{one.value:g}" for one in scores)


async def check_same_scores(stack: Stack) -> str:
    """Check that a sample has the same score whether it is sent directly or through the reward server."""
    if stack.services == ["rules"]:
        raise CheckSkippedError("nothing to compare: no URL of a model server is set")
    samples = [sample for sample in make_samples(*stack.services) if sample.exact]
    # Turn the cache off, so that the second path does not read the scores of the first.
    uncached = replace(stack, settings=replace(stack.settings, cache_url=""))
    paths = [await uncached.score(samples, direct=direct) for direct in (True, False)]
    for scores in paths:
        require_right(samples, scores)
    difference = max(abs((one.value or 0) - (second.value or 0)) for one, second in zip(*paths, strict=True))
    require(difference <= TOLERANCE, f"the scores differ by {difference:g}")
    return f"at most {difference:.1g} apart"


async def check_cache(stack: Stack) -> str:
    """Check that a repeated sample's score is read from the stack's cache, with the same value."""
    _require_cache(stack)
    return await _check_cached(stack, direct=False)


async def check_trainer_cache(stack: Stack) -> str:
    """Check that a trainer reads the stack's cache (REWARD_CACHE_URL) if it sends samples directly to model servers."""
    _require_cache(stack)
    if not stack.settings.cache_url:
        raise CheckSkippedError("REWARD_CACHE_URL is not set")
    return await _check_cached(stack, direct=True)


def _require_cache(stack: Stack) -> None:
    if not stack.settings.is_cache_enabled:
        raise CheckSkippedError("REWARD_CACHE is off")


async def _check_cached(stack: Stack, *, direct: bool) -> str:
    samples = [sample for sample in make_samples(*stack.services) if sample.cacheable]
    # Even these first scores may be reported as cached: a slow request is sent a second time, and the second request
    # may find the score that the first one has left in the cache.
    first = await stack.score(samples, direct=direct)
    require_right(samples, first)
    await wait_until_cached(stack, samples, first, direct=direct)
    return f"{len(samples)} of {len(samples)} read from the cache"


async def wait_until_cached(
    stack: Stack, samples: Sequence[Sample], scores: list[Score], *, direct: bool = False
) -> None:
    """Score the samples repeatedly until all scores come from the cache.

    The cached values must equal the values of the previous request in which every sample was `ok`.

    Args:
        stack: stack that scores the samples.
        samples: the samples.
        scores: the first scores of the samples.
        direct: whether to bypass the reward server, as in `Stack.score`.

    Raises:
        CheckFailedError: not all scores come from the cache within `CACHE_TIMEOUT`, or a cached value differs from
            the earlier value.
    """
    previous = scores

    async def all_cached() -> bool:
        nonlocal previous, scores
        new_scores = await stack.score(samples, direct=direct)
        if all(one.status == "ok" for one in new_scores):
            previous, scores = scores, new_scores
        return all(one.cached for one in new_scores)

    sources = ", ".join(dict.fromkeys(sample.request.data_source for sample in samples))
    await wait_until(all_cached, CACHE_TIMEOUT, f"not all samples of {sources} are read from the cache")
    require(
        [one.value for one in previous] == [one.value for one in scores],
        "the cached values differ from the values before",
    )
