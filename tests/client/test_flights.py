"""Batches of calls: what one caller boards leaves together, and what is on its way is shared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from rewardstack.core.coalescing import GATHER, Flights
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key


class Carrier:
    """Brings back the length of each text, and notes the batches."""

    batch_size = 8
    dropped = -1

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    async def carry(self, items: Sequence[str], deadline: SharedDeadline) -> Sequence[int]:
        """The lengths, after a moment."""
        self.batches.append(list(items))
        await asyncio.sleep(2 * GATHER)
        return [len(item) for item in items]

    def landed(self, outcomes: Iterable[tuple[str, int]]) -> None:
        """Nothing is kept."""

    def has_failed(self, outcome: int) -> bool:
        """None does."""
        return False


async def test_one_caller_leaves_together() -> None:
    """However long a caller takes to board, only full batches leave before it is done."""
    carrier = Carrier()
    flights: Flights[str, int] = Flights(carrier)
    waits = []
    with flights.boarding():
        for at in range(12):
            waits.append(flights.board(f"{at}", None, SharedDeadline(Deadline(5))))
            await asyncio.sleep(2 * GATHER)
    assert 12 == len(await asyncio.gather(*waits))
    assert [8, 4] == [len(batch) for batch in carrier.batches]


async def test_one_key_flies_once() -> None:
    """Who asks for what is on its way waits for it; afterwards it is asked for anew, as is what has no key."""
    carrier = Carrier()
    flights: Flights[str, int] = Flights(carrier)
    deadline = SharedDeadline(Deadline(5))
    first, second = flights.board("a", Key("a"), deadline), flights.board("a", Key("a"), SharedDeadline(Deadline(5)))
    assert first is second
    await asyncio.sleep(1.5 * GATHER)
    assert first is flights.board("a", Key("a"), deadline)
    await first
    assert first is not (again := flights.board("a", Key("a"), deadline))
    assert again is not (other := flights.board("a", None, deadline))
    assert [1, 1] == await asyncio.gather(again, other)
    assert [["a"], ["a", "a"]] == carrier.batches
