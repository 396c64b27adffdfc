"""Check that judge samples fail while the judge is down, and that they get right scores when it is up again."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from rewardstack.score import Score
from rewardstack_cli.deep.samples import PROBLEM, TIMEOUT, Sample, make_samples
from rewardstack_cli.deep.scores import wait_until_cached
from rewardstack_cli.deep.stack import (
    CHECK_INTERVAL,
    REQUEST_TIMEOUT,
    CheckSkippedError,
    Stack,
    require,
    require_right,
    wait_until,
)
from rewardstack_cli.probes.finding import ProbeError
from rewardstack_cli.probes.http import ProbedService

STOP_TIMEOUT = 120.0
"""Maximum seconds until a stopped judge no longer answers."""
OUTAGE_TIMEOUT = 5.0
"""Timeout in seconds of a sample while the judge is down."""
NOTICE_TIMEOUT = 30.0
"""Maximum seconds until a client that fails fast has found out that the judge answers again. It probes every 5 s."""
COMMAND_TIMEOUT = 300.0
"""Timeout in seconds of a command that stops or starts the judge."""

Switch = Callable[[], Coroutine[Any, Any, None]]
"""Stops or starts the judge, and returns when the command has ended."""


def command_switch(line: str) -> Switch:
    """Return a function that runs a command without a shell.

    Args:
        line: the command line, such as `docker compose stop judge`.
    """

    async def switch() -> None:
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(line), stdout=PIPE, stderr=STDOUT)
        except OSError as error:
            raise ProbeError(f"{line}: {error}", "correct the command; it is run without a shell") from error
        try:
            output, _ = await asyncio.wait_for(process.communicate(), COMMAND_TIMEOUT)
        except asyncio.TimeoutError:
            process.kill()
            raise ProbeError(f"{line}: still running after {COMMAND_TIMEOUT:g} s", "use a command that exits") from None
        require(process.returncode == 0, f"{line}: {output.decode(errors='replace').strip()[-500:]}")

    return switch


async def skip_outage(_: Stack) -> str:
    """Skip the outage check, because there are no commands that stop and start the judge."""
    raise CheckSkippedError("--stop-judge and --start-judge are not set")


async def check_judge_outage(stop: Switch, start: Switch, stack: Stack) -> str:
    """Check that new judge samples fail while the judge is down, and that they get right scores when it is up again.

    During the outage, samples of other services and judge samples whose scores are cached must still get scores.

    Args:
        stop: stops every replica of the judge.
        start: starts the replicas again.
        stack: a stack with a judge.

    Raises:
        CheckFailedError: the check failed. If `stop` was called, `start` was called, too.
        ProbeError: a command cannot be run, or does not end in time.
    """
    known = make_samples("judge")
    scores = await stack.score(known)
    require_right(known, scores)
    await wait_until_cached(stack, known, scores)
    new = make_samples("judge")
    async with _judge_stopped(stack, stop, start):
        await _require_failed(stack, [sample.with_timeout(OUTAGE_TIMEOUT) for sample in new])
        await _require_others(stack, known, scores)
    retried = [sample.with_timeout(TIMEOUT) for sample in new]
    for direct in (False, True):
        require_right(retried, await _score_again(stack, retried, direct=direct))
    return "failed while the judge was down, ok after its restart"


async def _require_failed(stack: Stack, new: list[Sample]) -> None:
    """Raise `CheckFailedError` if a new judge sample gets a score while the judge is down.

    The same samples are sent several times, to check that a failure is not cached as a score.
    """
    for direct in (False, True):
        for one in await stack.score(new, direct=direct):
            how = "directly" if direct else "through the reward server"
            require(
                one.status == "failed",
                f"a judge sample sent {how} is {one.status} ({one.value}), expected failed: the judge is down",
            )
            require(bool(one.reason), "a failed sample has no reason")
    without_policy = await stack.score(new, on_error="none")
    require(
        [one.value for one in without_policy] == [None] * len(new),
        "a failed sample has a value despite on_error='none'",
    )
    await _require_refused(stack, new[0].request.solution_str)


async def _score_again(stack: Stack, samples: list[Sample], *, direct: bool) -> list[Score]:
    """Return the scores of samples that failed, once the client has noticed that the judge is back."""
    end = time.monotonic() + NOTICE_TIMEOUT
    while True:
        scores = await stack.score(samples, direct=direct)
        if all(one.status != "failed" for one in scores) or time.monotonic() > end:
            return scores
        await asyncio.sleep(CHECK_INTERVAL)


async def _require_refused(stack: Stack, response: str) -> None:
    """Raise `CheckFailedError` unless `/get_reward` answers 503 with Retry-After, which makes the trainer retry."""
    body = {"prompts": [PROBLEM], "responses": [response], "golden_responses": ["90"]}
    path, deadline = "/get_reward?reward_type=llm_judge_remote", str(int(OUTAGE_TIMEOUT * 1000))
    for server in stack.servers("rules"):
        reply = await server.reply(path, json.dumps(body).encode(), REQUEST_TIMEOUT, X_Request_Deadline_Ms=deadline)
        require(
            reply.status == 503,
            f"{path} answers {reply.status} ({reply.data[:200]!r}), expected 503: the judge is down",
        )
        require("Retry-After" in reply.headers, f"{path} answers 503 without Retry-After")


async def _require_others(stack: Stack, known: list[Sample], scores: list[Score]) -> None:
    """Check samples that do not need the judge; raise `CheckFailedError` if one of them does not get its score.

    These are the samples of other services, and the judge samples whose scores are cached.
    """
    others = make_samples(*(service for service in stack.services if service != "judge"))
    require_right(others, await stack.score(others))
    await wait_until_cached(stack, [sample.with_timeout(OUTAGE_TIMEOUT) for sample in known], scores)


@asynccontextmanager
async def _judge_stopped(stack: Stack, stop: Switch, start: Switch) -> AsyncIterator[None]:
    """Stop the judge on entry, and start it again on exit, also after an error.

    If there was no error, wait until the judge answers.
    """

    async def is_healthy() -> bool:
        return all(await _list_health(stack))

    async def is_down() -> bool:
        return not any(await _list_health(stack))

    try:
        await stop()
        await wait_until(is_down, STOP_TIMEOUT, "the judge still answers")
        yield
    finally:
        await start()
    await wait_until(is_healthy, stack.loading_seconds, "the judge does not answer yet")


async def _list_health(stack: Stack) -> list[bool]:
    """Return for each URL of the judge whether it answers."""
    return [await _is_up(server) for server in stack.servers("judge")]


async def _is_up(server: ProbedService) -> bool:
    try:
        return (await server.reply("/health")).status == 200
    except ProbeError:
        return False
