"""Calls for one item each that are answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rewardstack.core.gathering import Gathering


class Answers:
    """Answers with the length of each text, and notes what was asked; a text that is empty is refused."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    async def __call__(self, items: Sequence[str], kind: str) -> list[int]:
        """The lengths, after a moment."""
        self.asked.append((len(items), kind))
        await asyncio.sleep(0.001)
        if "" in items:
            raise ValueError("it is empty")
        return [len(item) for item in items]


async def test_calls_go_together() -> None:
    """Calls that come at about the same time are one, for each kind; later ones are another."""
    answers = Answers()
    gathering = Gathering(answers)
    texts = ["a" * length for length in range(1, 50)]
    assert [*range(1, 50)] == await asyncio.gather(*(gathering.ask(text, "even"[: len(text) % 2]) for text in texts))
    assert 3 == await gathering.ask("abc", "")
    assert [(25, "e"), (24, ""), (1, "")] == answers.asked


async def test_who_is_to_blame_fails() -> None:
    """What cannot be answered fails by itself, and not those that were asked with it."""
    answers = Answers()
    gathering = Gathering(answers)
    outcomes = await asyncio.gather(*(gathering.ask(text, "") for text in ("a", "", "abc")), return_exceptions=True)
    assert [1, "it is empty", 3] == [one if isinstance(one, int) else str(one) for one in outcomes]
    assert [3, 1, 1, 1] == [count for count, _ in answers.asked]


@pytest.mark.parametrize("text", ["ab", ""])
async def test_a_caller_gives_up(text: str) -> None:
    """A caller that waits no longer is nothing to the others, whether its own item could be answered or not."""
    gathering = Gathering(Answers())
    gone = asyncio.create_task(gathering.ask(text, ""))
    stays = asyncio.create_task(gathering.ask("abc", ""))
    await asyncio.sleep(0)
    gone.cancel()
    assert 3 == await stays


@pytest.mark.parametrize("most", [0, 1])
async def test_too_few_answers(most: int) -> None:
    """What has no answer among those that came is asked for by itself, and fails where it has none then."""

    async def answer(items: Sequence[str], _: str) -> list[int]:
        return [len(item) for item in items[:most]]

    gathering = Gathering(answer)
    calls = asyncio.gather(*(gathering.ask(text, "") for text in ("a", "ab")), return_exceptions=True)
    outcomes = await asyncio.wait_for(calls, 1)
    assert [1, 2] == outcomes if most else [ValueError] * 2 == [type(one) for one in outcomes]


async def test_a_cancelled_answer() -> None:
    """Where the answer is cancelled, nobody goes on waiting for it."""

    async def answer(_: Sequence[str], __: str) -> list[int]:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(Gathering(answer).ask("a", ""), 1)


def test_loops_do_not_meet() -> None:
    """Calls of one event loop are never answered on another, not even where the first ended while they waited."""
    answers = Answers()
    gathering = Gathering(answers)

    async def begin() -> None:
        waiting = asyncio.create_task(gathering.ask("lost", ""))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(begin())
    assert 2 == asyncio.run(gathering.ask("ab", ""))
    assert [(1, "")] == answers.asked
