"""What must hold while the judge is down, and once it is back: no failure of it is ever a score."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.end_to_end import samples
from tests.end_to_end.samples import Sample
from tests.end_to_end.stack import Stack, Unmet, require, require_right, wait_until

STOPPED_SECONDS = 120.0
PATIENCE = 5.0
"""Seconds that a sample is waited for while the judge is down."""
COMMAND_SECONDS = 300.0

Switch = Callable[[], None]
"""Stops or starts the judge; returns when that is under way."""


def command(line: str) -> Switch:
    """A switch that runs a command, without a shell.

    Args:
        line: as one would type it, such as `docker compose stop judge`.
    """

    def switch() -> None:
        done = subprocess.run(
            shlex.split(line), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMMAND_SECONDS, check=False
        )
        require(done.returncode == 0, f"{line}: {done.stdout.decode(errors='replace').strip()[-500:]}")

    return switch


def judge_down(stack: Stack, stop: Switch, start: Switch) -> str:
    """While the judge is down its samples are failed, others are scored; when it is back, so are they.

    Args:
        stack: with a judge.
        stop: stops every replica of it.
        start: starts them again.

    Raises:
        Unmet: something is not so; the judge is started again all the same.
    """
    known = samples.judge()
    require_right(known, stack.score(known))
    new = samples.judge(timeout=PATIENCE)
    with _stopped(stack, stop, start):
        _require_failed(stack, new)
        _require_others(stack, known)
    patient = [sample._replace(request=_patient(sample)) for sample in new]
    scores = stack.score(patient)
    require_right(patient, scores)
    require(not any(one.cached for one in scores), "what failed was remembered as a score")
    require_right(patient, stack.score(patient, direct=True))
    return "failed while it was down, ok when it was back"


def _require_failed(stack: Stack, new: list[Sample]) -> None:
    for direct in (False, True):
        for one in stack.score(new, direct=direct):
            how = "directly" if direct else "through the reward server"
            require(one.status == "failed", f"asked {how}, it is {one.status} ({one.value}) without a judge")
            require(bool(one.reason), "a failure without a reason")
    unknown = stack.score(new, on_error="none")
    require([one.value for one in unknown] == [None] * len(new), "a failure has a value under on_error='none'")
    body = {"prompts": [samples.PROBLEM], "responses": [new[0].request.solution_str], "golden_responses": ["90"]}
    url = f"{stack.reward_url}/get_reward?reward_type=llm_judge_remote"
    reply = stack.ask(url, body, X_Request_Deadline_Ms=str(int(PATIENCE * 1000)))
    require(reply.status == 503, f"/get_reward answers {reply.status} ({reply.data[:200]!r}) without a judge")
    require("Retry-After" in reply.headers, "/get_reward answers 503 without Retry-After")


def _require_others(stack: Stack, known: list[Sample]) -> None:
    """What the cache has, and what needs no judge, is scored as ever."""
    others = [sample for sample in stack.samples() if sample.service != "judge"]
    require_right(others, stack.score(others))
    remembered = stack.score(known)
    require_right(known, remembered)
    require(all(one.cached for one in remembered), "known verdicts do not come from the cache")


@contextmanager
def _stopped(stack: Stack, stop: Switch, start: Switch) -> Iterator[None]:
    """The judge is down; afterwards it is started again, whatever happened, and waited for where all went well."""
    try:
        stop()
        wait_until(lambda: not _is_well(stack), STOPPED_SECONDS, "the judge stops answering")
        yield
    finally:
        start()
    wait_until(lambda: _is_well(stack), stack.loading_seconds, "the judge answers again")


def _is_well(stack: Stack) -> bool:
    try:
        return stack.ask(f"{stack.judge_url}/health").status == 200
    except Unmet:
        return False


def _patient(sample: Sample) -> samples.Request:
    request = sample.request
    extra = {**(request.extra_info or {}), "timeout": samples.TIMEOUT}
    return samples.Request(request.data_source, request.solution_str, request.ground_truth, extra)
