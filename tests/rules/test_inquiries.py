"""Questions on their way: each is decided once for all who ask it, and none suffers for those it travels with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from rewardstack.errors import UnreachableError
from rewardstack_rules.scoring.inquiries import TOGETHER, Inquiries
from rewardstack_rules.scoring.verdict_cache import Verdicts
from rewardstack_verifier.question import Question, Ruling

RIGHT = {"right": True, "reason": ""}


class Decider:
    """Stands in for the isolated processes: notes what it is asked, and answers when it is told to.

    Args:
        spoils: what happens to a task that holds the question "bad".
    """

    def __init__(self, spoils: Callable[[], Mapping[str, Any]] = lambda: {"error": "timeout"}) -> None:
        self.tasks: list[list[str]] = []
        self.brief: list[bool] = []
        self.ended: list[list[str]] = []
        self.go = asyncio.Event()
        self._spoils = spoils

    async def __call__(self, questions: Sequence[Question], brief: bool) -> Mapping[str, Any]:
        task = [one.answer for one in questions]
        self.tasks.append(task)
        self.brief.append(brief)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append(task)
            raise
        return self._spoils() if "bad" in task else {"verdicts": [RIGHT] * len(task)}


def question(answer: str) -> Question:
    """A question."""
    return Question(answer, ("2\\sqrt{2}",))


def unreachable() -> Mapping[str, Any]:
    """There are no isolated processes."""
    raise UnreachableError("gone")


def fault() -> Mapping[str, Any]:
    """Something that nobody thought of."""
    raise RuntimeError("a fault")


async def settle() -> None:
    """Lets everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_decided_once() -> None:
    """A question is run once for all who ask it meanwhile; later its verdict is known."""
    verdicts, decider = Verdicts(), Decider()
    inquiries = Inquiries(decider, verdicts)
    waits = [inquiries.ask(question("1")) for _ in range(3)]
    await settle()
    waits.append(inquiries.ask(question("1")))
    decider.go.set()

    assert await asyncio.gather(*waits) == [Ruling(True)] * 4
    assert (decider.tasks, verdicts.recall(question("1"))) == ([["1"]], Ruling(True))


async def test_together() -> None:
    """What is asked in one turn of the loop travels together, up to so many, to be brief; one alone has its time."""
    decider = Decider()
    inquiries = Inquiries(decider, Verdicts())
    decider.go.set()

    outcomes = await asyncio.gather(*(inquiries.ask(question(str(number))) for number in range(TOGETHER + 1)))

    assert outcomes == [Ruling(True)] * (TOGETHER + 1)
    assert [len(task) for task in decider.tasks] == [TOGETHER, 1]
    assert decider.brief == [True, False]


@pytest.mark.parametrize("error", ["timeout", "killed", "raised"])
async def test_each_for_itself(error: str) -> None:
    """Where a group comes to a bad end each of its questions starts over alone, and only the one to blame fails."""
    verdicts, decider = Verdicts(), Decider(lambda: {"error": error})
    inquiries = Inquiries(decider, verdicts)
    decider.go.set()

    outcomes = await asyncio.gather(*(inquiries.ask(question(answer)) for answer in ("1", "bad", "2")))

    assert outcomes == [Ruling(True), {"error": error}, Ruling(True)]
    assert decider.tasks == [["1", "bad", "2"], ["1"], ["bad"], ["2"]]
    assert verdicts.recall(question("bad")) is None


@pytest.mark.parametrize(("spoils", "message"), [(unreachable, "gone"), (fault, "internal error: RuntimeError")])
async def test_raised(spoils: Callable[[], Mapping[str, Any]], message: str) -> None:
    """What the run raises is everybody's outcome, and the next who asks has it run again."""
    decider = Decider(spoils)
    inquiries = Inquiries(decider, Verdicts())
    decider.go.set()

    for _ in range(2):
        outcomes = await asyncio.gather(*(inquiries.ask(question(answer)) for answer in ("1", "bad")))
        assert [str(outcome) for outcome in outcomes] == [message] * 2
    assert decider.tasks == [["1", "bad"]] * 2


async def test_giving_up_ends_nobody_else() -> None:
    """One who stops waiting leaves the run to the others, be it for the same question or for one beside it."""
    decider = Decider()
    inquiries = Inquiries(decider, Verdicts())
    one, same, beside = (inquiries.ask(question(answer)) for answer in ("1", "1", "2"))
    await settle()
    one.cancel()
    beside.cancel()
    await settle()
    decider.go.set()

    assert await asyncio.wait_for(same, 5) == Ruling(True)
    assert decider.ended == []


@pytest.mark.parametrize("answers", [["1"], ["1", "2"]], ids=["alone", "together"])
async def test_nothing_runs_for_nobody(answers: list[str]) -> None:
    """When the last has stopped waiting the run is ended, and who asks the same then starts anew."""
    decider = Decider()
    inquiries = Inquiries(decider, Verdicts())
    waits = [inquiries.ask(question(answer)) for answer in answers]
    await settle()
    for wait in waits:
        wait.cancel()
    await settle()
    decider.go.set()

    assert decider.ended == [answers]
    assert await inquiries.ask(question("1")) == Ruling(True)
    assert decider.tasks == [answers, ["1"]]


async def test_never_sent() -> None:
    """A question that nobody waits for when its turn comes is not sent, nor started over."""
    decider = Decider()
    inquiries = Inquiries(decider, Verdicts())
    inquiries.ask(question("0")).cancel()
    waits = {answer: inquiries.ask(question(answer)) for answer in ("1", "bad", "2")}
    await settle()
    waits["2"].cancel()
    decider.go.set()

    assert (await waits["1"], await waits["bad"]) == (Ruling(True), {"error": "timeout"})
    assert decider.tasks == [["1", "bad", "2"], ["1"], ["bad"]]
