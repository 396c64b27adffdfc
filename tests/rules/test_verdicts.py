"""The memory of verdicts: each question is decided once, for all who ask it, and failures are not facts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from rewardstack.deadline import Deadline, SharedDeadline
from rewardstack.errors import DeadlineError
from rewardstack_rules.mathematics import Question, Verdict
from rewardstack_rules.verdicts import MAX_QUESTION, Verdicts

RIGHT = {"right": True, "reason": ""}


class Decider:
    """Stands in for the isolated processes: counts what it is asked and answers when it is told to.

    Args:
        result: of every run.
    """

    def __init__(self, result: Mapping[str, Any] = RIGHT) -> None:
        self.result = result
        self.runs = 0
        self.go = asyncio.Event()
        self.deadlines: list[SharedDeadline] = []

    async def __call__(self, deadline: SharedDeadline) -> Mapping[str, Any]:
        self.runs += 1
        self.deadlines.append(deadline)
        try:
            await asyncio.wait_for(self.go.wait(), deadline.remaining())
        except asyncio.TimeoutError:
            raise DeadlineError("dropped") from None
        return self.result


def patience(seconds: float = 60.0) -> SharedDeadline:
    """The deadline of one who waits so long."""
    return SharedDeadline(Deadline(seconds))


def question(answer: str = "\\sqrt{8}", reference: str = "2\\sqrt{2}") -> Question:
    """A question."""
    return Question(answer, (reference,))


async def test_decided_once() -> None:
    """A question is run once; later it is known, and another one is not."""
    verdicts, decider = Verdicts(), Decider()
    decider.go.set()

    results = [await verdicts.decide(question(), decider, patience()) for _ in range(3)]

    assert results == [RIGHT] * 3
    assert decider.runs == 1
    assert (verdicts.recall(question()), verdicts.recall(question("1"))) == (Verdict(True), None)


async def test_shared_in_flight() -> None:
    """All who ask while it is being decided share one run."""
    verdicts, decider = Verdicts(), Decider()
    asking = [asyncio.create_task(verdicts.decide(question(), decider, patience())) for _ in range(8)]
    await asyncio.sleep(0)
    decider.go.set()

    assert await asyncio.gather(*asking) == [RIGHT] * 8
    assert decider.runs == 1


async def test_longest_patience_counts() -> None:
    """A run lasts as long as the most patient of those who wait for it."""
    verdicts, decider = Verdicts(), Decider()
    asking = [
        asyncio.create_task(verdicts.decide(question(), decider, SharedDeadline(Deadline(60, limit))))
        for limit in (5.0, 50.0)
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = decider.deadlines[0].remaining()
    decider.go.set()
    await asyncio.gather(*asking)

    assert 40 < left <= 50


async def test_giving_up_ends_nobody_else() -> None:
    """One who stops waiting leaves the run to the others."""
    verdicts, decider = Verdicts(), Decider()
    one, other = (asyncio.create_task(verdicts.decide(question(), decider, patience())) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    decider.go.set()

    assert await other == RIGHT


@pytest.mark.parametrize("error", ["timeout", "killed"])
async def test_failures_are_forgotten(error: str) -> None:
    """A timeout or a killed process says nothing about the question: the next who asks has it run again."""
    verdicts, decider = Verdicts(), Decider({"error": error})
    decider.go.set()
    faults: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))

    results = [await verdicts.decide(question(), decider, patience()) for _ in range(2)]

    assert results == [{"error": error}] * 2
    assert (decider.runs, verdicts.recall(question()), faults) == (2, None, [])


async def test_deadline_passes() -> None:
    """Where nobody can wait longer, each of them hears so, and the next who asks starts anew."""
    verdicts, decider = Verdicts(), Decider()
    short = [verdicts.decide(question(), decider, patience(0.01)) for _ in range(2)]

    outcomes = await asyncio.gather(*short, return_exceptions=True)
    decider.go.set()

    assert [type(outcome) for outcome in outcomes] == [DeadlineError] * 2
    assert await verdicts.decide(question(), decider, patience()) == RIGHT


async def test_bounded() -> None:
    """It holds so many verdicts, forgets those not asked for, and keeps no question that is long."""
    verdicts, decider = Verdicts(size=2), Decider()
    decider.go.set()
    long = question(reference="x" * (MAX_QUESTION + 1))

    for asked in (question("1"), question("2"), question("1"), question("3"), long):
        await verdicts.decide(asked, decider, patience())

    known = [verdicts.recall(asked) is not None for asked in (question("1"), question("2"), question("3"), long)]
    assert known == [True, False, True, False]
