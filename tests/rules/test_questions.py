"""Questions to isolated processes: each is decided once for all who ask it, and none breaks another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rewardstack.core.lru import LruCache
from rewardstack.errors import UnreachableError
from rewardstack.pipeline.scorer import Context
from rewardstack.score import Item, Score
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.scoring.rule import MAX_QUESTION, QUESTION_BATCH, Isolation, LocalSample, Verdicts, VerifierRule
from rewardstack_verifier.question import Question
from tests.support.scoring import context

RIGHT = {"right": True, "reason": "", "by": ""}


class Decider:
    """Stands in for the client of isolated processes: notes what it is asked, and answers when it is told to.

    Args:
        spoils: what happens to a task that holds the question "bad".
    """

    def __init__(self, spoils: Callable[[], Mapping[str, Any]] = lambda: {"error": "timeout"}) -> None:
        self.tasks: list[list[str]] = []
        self.stop_if_slow: list[bool] = []
        self.ended = 0
        self.go = asyncio.Event()
        self._spoils = spoils

    async def run(
        self, task: Mapping[str, Any], timeout: float, *, stop_if_slow: bool, tenant: str
    ) -> Mapping[str, Any]:
        """As `IsolationClient.run`."""
        asked = [one.answer for one in task["questions"]]
        self.tasks.append(asked)
        self.stop_if_slow.append(stop_if_slow)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        return self._spoils() if "bad" in asked else {"verdicts": [RIGHT] * len(asked)}


def verifier(decider: Decider, verdicts: Verdicts | None = None) -> VerifierRule:
    """The scorer of `math` in front of a decider."""
    rule = load_registry([]).get("math")
    assert rule.verifier is not None
    isolation = Isolation(decider, 60.0)  # type: ignore[arg-type]
    return VerifierRule(rule, rule.verifier, isolation, LruCache(16) if verdicts is None else verdicts)


async def asked(scorer: VerifierRule, *answers: str, within: Context | None = None) -> list[Score]:
    """The scores of samples that have these answers."""
    samples = [LocalSample(Item(""), Question(answer, ("2\\sqrt{2}",))) for answer in answers]
    return await scorer.score(samples, within or context())


async def settle() -> None:
    """Lets everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def unreachable() -> Mapping[str, Any]:
    """There are no isolated processes."""
    raise UnreachableError("gone")


def fault() -> Mapping[str, Any]:
    """Something that nobody thought of."""
    raise RuntimeError("a fault")


async def test_decided_once() -> None:
    """A question is decided once for all who ask it meanwhile; later its verdict is known, to its tenant alone."""
    decider = Decider()
    scorer = verifier(decider)
    first = asyncio.gather(*(asked(scorer, "1", "1") for _ in range(2)))
    await settle()
    later = asyncio.create_task(asked(scorer, "1"))
    await settle()
    decider.go.set()

    assert {1.0} == {score.value for scores in await first for score in scores}
    assert [1.0] == [score.value for score in [*await later, *await asked(scorer, "1")]][1:]
    assert decider.tasks == [["1"]]
    other = context()
    other.tenant = "other"
    await asked(scorer, "1", within=other)
    assert decider.tasks == [["1"], ["1"]]


async def test_what_is_remembered() -> None:
    """As many verdicts are remembered as there is room for, and none of a long question."""
    decider = Decider()
    scorer = verifier(decider, LruCache(2))
    decider.go.set()
    long = "x" * (MAX_QUESTION + 1)
    for answer in ("1", "2", "1", "3", long, "1", "2", long):
        await asked(scorer, answer)
    assert decider.tasks == [["1"], ["2"], ["3"], [long], ["2"], [long]]


async def test_together() -> None:
    """What is asked in one turn of the loop travels together, up to so many, to be brief; one alone has its time."""
    decider = Decider()
    decider.go.set()
    size = int(QUESTION_BATCH.size)

    scores = await asked(verifier(decider), *map(str, range(size + 1)))

    assert [score.value for score in scores] == [1.0] * (size + 1)
    assert [len(task) for task in decider.tasks] == [size, 1]
    assert decider.stop_if_slow == [True, False]


@pytest.mark.parametrize("error", ["timeout", "killed", "raised"])
async def test_each_for_itself(error: str) -> None:
    """If a batch comes to a bad end each of its questions is asked alone, and only the one to blame fails."""
    decider = Decider(lambda: {"error": error})
    scorer = verifier(decider)
    decider.go.set()

    scores = await asked(scorer, "1", "bad", "2")

    assert [score.status for score in scores] == ["ok", "failed", "ok"]
    assert decider.tasks == [["1", "bad", "2"], ["1"], ["bad"], ["2"]]
    await asked(scorer, "bad")
    assert decider.tasks[4:] == [["bad"]]


@pytest.mark.parametrize(("spoils", "message"), [(unreachable, "gone"), (fault, "internal error: RuntimeError")])
async def test_raised(spoils: Callable[[], Mapping[str, Any]], message: str) -> None:
    """What the processes' client raises fails every question, and the next who asks has it decided again."""
    decider = Decider(spoils)
    scorer = verifier(decider)
    decider.go.set()

    for _ in range(2):
        assert [message] * 2 == [score.reason for score in await asked(scorer, "1", "bad")]
    assert decider.tasks == [["1", "bad"]] * 2


async def test_nothing_runs_for_nobody() -> None:
    """A run ends at the deadline of the last caller that waits for it; another caller's question keeps running."""
    decider = Decider()
    scorer = verifier(decider)
    gone, stays = (
        asyncio.create_task(asked(scorer, "1", within=context(limit=0.1))),  # expires
        asyncio.create_task(asked(scorer, "2")),
    )

    [late] = await asyncio.wait_for(gone, 60)
    assert (late.status, decider.ended) == ("failed", 0)
    decider.go.set()
    assert [1.0] == [score.value for score in await asyncio.wait_for(stays, 60)]

    decider.go.clear()
    [late] = await asyncio.wait_for(asked(scorer, "3", within=context(limit=0.1)), 60)  # expires after 0.1 s
    await settle()
    assert (late.status, decider.ended) == ("failed", 1)
