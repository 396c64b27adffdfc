"""Check of an outage: a failure of the judge never becomes a score, neither during the outage nor after it."""

from __future__ import annotations

import asyncio
import json
import shlex
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from rewardstack.score import Score
from rewardstack_cli.deep.samples import PROBLEM, TIMEOUT, Sample, samples
from rewardstack_cli.deep.scores import wait_until_cached
from rewardstack_cli.deep.stack import REQUEST_TIMEOUT, LeftOut, Stack, require, require_right, wait_until
from rewardstack_cli.probes.finding import ProbeError
from rewardstack_cli.probes.http import Probed

STOPPED_SECONDS = 120.0
"""Maximum seconds until a stopped judge no longer answers."""
GIVEN_UP = 5.0
"""Timeout in seconds of a sample while the judge is down."""
COMMAND_SECONDS = 300.0
"""Timeout in seconds of a command that stops or starts the judge."""

Switch = Callable[[], Coroutine[Any, Any, None]]
"""Stops or starts the judge; returns when the command has ended."""


def command(line: str) -> Switch:
    """Return a switch that runs a command without a shell.

    Args:
        line: the command line, such as `docker compose stop judge`.
    """

    async def switch() -> None:
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(line), stdout=PIPE, stderr=STDOUT)
        except OSError as error:
            raise ProbeError(f"{line}: {error}", "correct the command; it is run without a shell") from error
        try:
            output, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            raise ProbeError(f"{line}: still running after {COMMAND_SECONDS:g} s", "use a command that exits") from None
        require(process.returncode == 0, f"{line}: {output.decode(errors='replace').strip()[-500:]}")

    return switch


async def no_outage(_: Stack) -> str:
    """Leave the outage check out: no commands that stop and start the judge were given."""
    raise LeftOut("--stop-judge and --start-judge are not set")


async def judge_down(stop: Switch, start: Switch, stack: Stack) -> str:
    """Check that new judge samples fail during an outage and are scored after it, and that all others are scored.

    Args:
        stop: stops every replica of the judge.
        start: starts the replicas again.
        stack: a stack with a judge.

    Raises:
        Unmet: a condition does not hold; the judge is started again first.
    """
    known = samples("judge")
    scores = await stack.score(known)
    require_right(known, scores)
    await wait_until_cached(stack, known, scores)
    new = samples("judge")
    async with _stopped(stack, stop, start):
        await _require_failed(stack, [sample.within(GIVEN_UP) for sample in new])
        await _require_others(stack, known, scores)
    patient = [sample.within(TIMEOUT) for sample in new]
    require_right(patient, await stack.score(patient))
    require_right(patient, await stack.score(patient, direct=True))
    return "failed while it was down, ok when it was back"


async def _require_failed(stack: Stack, new: list[Sample]) -> None:
    """Raise `Unmet` unless new samples fail each time: a failure must not be cached as a score.

    This is checked while the judge is down. When it is back, a second request gets the cached score of the first.
    """
    for direct in (False, True):
        for one in await stack.score(new, direct=direct):
            how = "directly" if direct else "through the reward server"
            require(one.status == "failed", f"asked {how}, it is {one.status} ({one.value}) without a judge")
            require(bool(one.reason), "a failure without a reason")
    unknown = await stack.score(new, on_error="none")
    require([one.value for one in unknown] == [None] * len(new), "a failure has a value under on_error='none'")
    await _require_refused(stack, new[0].request.solution_str)


async def _require_refused(stack: Stack, response: str) -> None:
    """Raise `Unmet` unless `/get_reward`, which cannot report a failure, answers 503 so that the trainer retries."""
    body = {"prompts": [PROBLEM], "responses": [response], "golden_responses": ["90"]}
    path, deadline = "/get_reward?reward_type=llm_judge_remote", str(int(GIVEN_UP * 1000))
    for server in stack.servers("rules"):
        reply = await server.reply(path, json.dumps(body).encode(), REQUEST_TIMEOUT, X_Request_Deadline_Ms=deadline)
        require(reply.status == 503, f"{path} answers {reply.status} ({reply.data[:200]!r}) without a judge")
        require("Retry-After" in reply.headers, f"{path} answers 503 without Retry-After")


async def _require_others(stack: Stack, known: list[Sample], scores: list[Score]) -> None:
    """Raise `Unmet` unless cached scores, and samples that need no judge, are still returned."""
    others = samples(*(service for service in stack.services if service != "judge"))
    require_right(others, await stack.score(others))
    await wait_until_cached(stack, [sample.within(GIVEN_UP) for sample in known], scores)


@asynccontextmanager
async def _stopped(stack: Stack, stop: Switch, start: Switch) -> AsyncIterator[None]:
    """Stop the judge within the context; always start it again on exit, and without an error wait until it answers."""

    async def is_healthy() -> bool:
        return all(await _health(stack))

    async def is_down() -> bool:
        return not any(await _health(stack))

    try:
        await stop()
        await wait_until(is_down, STOPPED_SECONDS, "the judge stops answering")
        yield
    finally:
        await start()
    await wait_until(is_healthy, stack.loading_seconds, "the judge answers again")


async def _health(stack: Stack) -> list[bool]:
    """Return for each URL of the judge whether it answers."""
    return [await _answers(server) for server in stack.servers("judge")]


async def _answers(server: Probed) -> bool:
    try:
        return (await server.reply("/health")).status == 200
    except ProbeError:
        return False
