"""What must hold while the judge is down, and once it is back: no failure of it is ever a score."""

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
from rewardstack_cli.deep.scores import until_remembered
from rewardstack_cli.deep.stack import PATIENCE, LeftOut, Stack, require, require_right, wait_until
from rewardstack_cli.probes.finding import Trouble
from rewardstack_cli.probes.http import Probed

STOPPED_SECONDS = 120.0
GIVEN_UP = 5.0
"""Seconds that a sample is waited for while the judge is down."""
COMMAND_SECONDS = 300.0

Switch = Callable[[], Coroutine[Any, Any, None]]
"""Stops or starts the judge; returns when that is under way."""


def command(line: str) -> Switch:
    """A switch that runs a command, without a shell.

    Args:
        line: as one would type it, such as `docker compose stop judge`.
    """

    async def switch() -> None:
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(line), stdout=PIPE, stderr=STDOUT)
        except OSError as error:
            raise Trouble(f"{line}: {error}", "correct the command; it is run without a shell") from error
        try:
            said, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        except asyncio.TimeoutError:
            process.kill()
            raise Trouble(f"{line}: not done after {COMMAND_SECONDS:g} s", "give a command that ends") from None
        require(process.returncode == 0, f"{line}: {said.decode(errors='replace').strip()[-500:]}")

    return switch


async def untold(_: Stack) -> str:
    """In place of an outage that nobody told how to bring about."""
    raise LeftOut("--stop-judge and --start-judge do not say how to bring one about")


async def judge_down(stop: Switch, start: Switch, stack: Stack) -> str:
    """While the judge is down its samples are failed, others are scored; when it is back, so are they.

    Args:
        stop: stops every replica of it.
        start: starts them again.
        stack: with a judge.

    Raises:
        Unmet: something is not so; the judge is started again all the same.
    """
    known = samples("judge")
    scores = await stack.score(known)
    require_right(known, scores)
    await until_remembered(stack, known, scores)
    new = samples("judge")
    async with _stopped(stack, stop, start):
        await _require_failed(stack, [sample.within(GIVEN_UP) for sample in new])
        await _require_others(stack, known, scores)
    patient = [sample.within(TIMEOUT) for sample in new]
    require_right(patient, await stack.score(patient))
    require_right(patient, await stack.score(patient, direct=True))
    return "failed while it was down, ok when it was back"


async def _require_failed(stack: Stack, new: list[Sample]) -> None:
    """New samples fail, and fail again: no failure is remembered as a score.

    Once the judge is back, `cached` does not show that: a request that was sent twice finds what the first one scored.
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
    """A trainer's own protocol has no word for a failure, so the answer is one that the trainer tries again."""
    body = {"prompts": [PROBLEM], "responses": [response], "golden_responses": ["90"]}
    path, deadline = "/get_reward?reward_type=llm_judge_remote", str(int(GIVEN_UP * 1000))
    for server in stack.servers("rules"):
        reply = await server.reply(path, json.dumps(body).encode(), PATIENCE, X_Request_Deadline_Ms=deadline)
        require(reply.status == 503, f"{path} answers {reply.status} ({reply.data[:200]!r}) without a judge")
        require("Retry-After" in reply.headers, f"{path} answers 503 without Retry-After")


async def _require_others(stack: Stack, known: list[Sample], scores: list[Score]) -> None:
    """What the cache has, and what needs no judge, is scored as ever."""
    others = samples(*(service for service in stack.services if service != "judge"))
    require_right(others, await stack.score(others))
    await until_remembered(stack, [sample.within(GIVEN_UP) for sample in known], scores)


@asynccontextmanager
async def _stopped(stack: Stack, stop: Switch, start: Switch) -> AsyncIterator[None]:
    """The judge is down; afterwards it is started again, whatever happened, and waited for where all went well."""

    async def is_well() -> bool:
        return all(await _health(stack))

    async def is_down() -> bool:
        return not any(await _health(stack))

    try:
        await stop()
        await wait_until(is_down, STOPPED_SECONDS, "the judge stops answering")
        yield
    finally:
        await start()
    await wait_until(is_well, stack.loading_seconds, "the judge answers again")


async def _health(stack: Stack) -> list[bool]:
    """Of each address of the judge, whether it answers."""
    return [await _answers(server) for server in stack.servers("judge")]


async def _answers(server: Probed) -> bool:
    try:
        return (await server.reply("/health")).status == 200
    except Trouble:
        return False
