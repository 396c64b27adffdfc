"""Batches of calls: what one caller submits goes out together, and what is under way is shared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewardstack.core.coalescing import GATHER, SLICE, Coalescer, Lane, one_lane
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.keys import Key


class Backend:
    """Answers with the length of each text, and notes the batches."""

    dropped = -1

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    async def send(self, items: Sequence[str], keys: Sequence[Key | None], deadline: SharedDeadline) -> Sequence[int]:
        """The lengths, after a moment."""
        self.batches.append(list(items))
        await asyncio.sleep(2 * GATHER)
        return [len(item) for item in items]

    def late(self, reason: str) -> int:
        """None is."""
        raise AssertionError(reason)

    def has_failed(self, outcome: int) -> bool:
        """None does."""
        return False


async def test_one_callers_items_go_together() -> None:
    """Before all of a caller's items are submitted only full batches of them go out."""
    backend = Backend()
    coalescer: Coalescer[str, int] = Coalescer(backend, one_lane(8))
    texts = [f"{at}" for at in range(SLICE + 4)]
    assert list(map(len, texts)) == await coalescer.ask(texts, [None] * len(texts), Deadline(5))
    assert [8] * (SLICE // 8) + [4] == [len(batch) for batch in backend.batches]


async def test_one_key_is_asked_once() -> None:
    """Who asks for what is on its way waits for it; afterwards it is asked for anew, as is what has no key."""
    backend = Backend()
    coalescer: Coalescer[str, int] = Coalescer(backend, one_lane(8))
    deadline = SharedDeadline(Deadline(5))
    first, second = (
        coalescer.submit("a", Key("a"), deadline),
        coalescer.submit("a", Key("a"), SharedDeadline(Deadline(5))),
    )
    assert first is second
    await asyncio.sleep(1.5 * GATHER)
    assert first is coalescer.submit("a", Key("a"), deadline)
    await first
    assert first is not (again := coalescer.submit("a", Key("a"), deadline))
    assert again is not (other := coalescer.submit("a", None, deadline))
    assert [1, 1] == await asyncio.gather(again, other)
    assert [["a"], ["a", "a"]] == backend.batches


async def test_lanes() -> None:
    """Batches are of one lane, and a lane has only so many items under way; the next go out when there is room."""
    backend = Backend()
    coalescer: Coalescer[str, int] = Coalescer(backend, lambda text: Lane(3, text[0], 4 if text[0] == "n" else 100))
    texts = [f"{lane}{at}" for at in range(5) for lane in ("n", "w")]
    assert [2] * 10 == await coalescer.ask(texts, [None] * 10, Deadline(5))
    narrow = [batch for batch in backend.batches if batch[0][0] == "n"]
    assert [["n0", "n1", "n2"], ["n3"], ["n4"]] == narrow
    assert [["w0", "w1", "w2"], ["w3", "w4"]] == [batch for batch in backend.batches if batch[0][0] == "w"]


async def test_shutdown() -> None:
    """Where the client shuts down, what is under way or waits for its turn is dropped, and nothing else is sent."""
    backend = Backend()
    coalescer: Coalescer[str, int] = Coalescer(backend, lambda text: Lane(1, None, 2))
    waits = [coalescer.submit(f"{at}", None, SharedDeadline(Deadline(5))) for at in range(5)]
    await asyncio.sleep(0)
    for task in coalescer._running:
        task.cancel()
    assert [backend.dropped] * 5 == await asyncio.gather(*waits)
    assert [["0"], ["1"]] == backend.batches
