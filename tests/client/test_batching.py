"""The batcher: items that callers ask for at about the same time are sent together, and items in flight are shared."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rewardstack.core import stretch
from rewardstack.core.batching import WINDOW, Batcher, BatchKey
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import DeadlineError, ServiceError

EIGHT = BatchKey(8)


class Lengths:
    """Answers with the length of each text, and notes the batches; refuses a batch with an empty text.

    Args:
        most: outcomes of a batch at most.
    """

    def __init__(self, most: int | None = None) -> None:
        self.batches: list[list[str]] = []
        self.go = asyncio.Event()
        self.go.set()
        self._most = most

    async def __call__(self, items: Sequence[str], deadline: SharedDeadline) -> Sequence[int]:
        self.batches.append([*items])
        await asyncio.sleep(2 * WINDOW)
        await self.go.wait()
        if "" in items:
            raise ValueError("it is empty")
        return [len(item) for item in items][: self._most]


async def test_one_callers_items_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before all of a caller's items are submitted only full batches of them are sent, also if it rests meanwhile."""
    monkeypatch.setattr(stretch, "SECONDS", -1.0)
    send = Lengths()
    texts = [f"{at}" for at in range(516)]
    assert list(map(len, texts)) == await Batcher(send).ask(texts, [EIGHT] * len(texts), Deadline(60))
    assert [8] * 64 + [4] == [len(batch) for batch in send.batches]


async def test_equal_items_are_sent_once() -> None:
    """A caller waits for an equal item that is in flight; later it is sent again, as is an item that is not shared."""
    send = Lengths()
    send.go.clear()
    batcher: Batcher[str, int] = Batcher(send)
    same, alone = (["a"], [EIGHT], Deadline(60), ["a"]), (["a"], [EIGHT], Deadline(60), [None])
    first = asyncio.create_task(batcher.ask(*same))
    while not send.batches:
        await asyncio.sleep(WINDOW)
    second = asyncio.create_task(batcher.ask(*same))
    await asyncio.sleep(0)
    send.go.set()
    assert [[1]] * 2 == await asyncio.gather(first, second)
    assert [[1]] * 2 == await asyncio.gather(batcher.ask(*same), batcher.ask(*alone))
    assert [["a"], ["a", "a"]] == send.batches


async def test_batch_keys() -> None:
    """A batch has one key, which limits its items in flight; the next batch is sent when there is room."""
    send = Lengths()
    texts = [f"{name}{at}" for at in range(5) for name in ("n", "w")]
    keys = [BatchKey(3, text[0], 4 if text[0] == "n" else 100) for text in texts]
    assert [2] * 10 == await Batcher(send).ask(texts, keys, Deadline(60))
    assert [["n0", "n1", "n2"], ["n3"], ["n4"]] == [batch for batch in send.batches if batch[0][0] == "n"]
    assert [["w0", "w1", "w2"], ["w3", "w4"]] == [batch for batch in send.batches if batch[0][0] == "w"]


async def test_affinity() -> None:
    """Items with the same affinity are sent one after another; outcomes are in the caller's order."""
    send = Lengths()
    texts = ["a", "bb", "aaa", "bbbb"]
    assert [1, 2, 3, 4] == await Batcher(send).ask(texts, [BatchKey(4, affinity=one[0]) for one in texts], Deadline(60))
    assert [["a", "aaa", "bb", "bbbb"]] == send.batches


async def test_late() -> None:
    """An item whose caller's deadline passes is late, and says so; one who waits longer for it has its outcome."""
    send = Lengths()
    send.go.clear()
    batcher: Batcher[str, int] = Batcher(send)
    patient = asyncio.create_task(batcher.ask(["a"], [EIGHT], Deadline(60), ["a"]))
    [late] = await batcher.ask(["a"], [EIGHT], Deadline(0.01), ["a"])  # expires: the batch is held
    send.go.set()
    assert isinstance(late, DeadlineError) and str(late).startswith("no answer within 0.01 s")
    assert [1] == await patient
    assert [["a"]] == send.batches


async def test_sent_again_for_who_has_more_time() -> None:
    """What failed is sent again if somebody has joined who can wait longer, and only then."""
    batches: list[int] = []
    joined = asyncio.Event()

    async def send(items: Sequence[str], deadline: SharedDeadline) -> Sequence[str]:
        batches.append(len(items))
        await joined.wait()
        return ["failed" if len(batches) == 1 else "ok"] * len(items)

    batcher: Batcher[str, str] = Batcher(send, has_failed="failed".__eq__)
    first = asyncio.create_task(batcher.ask(["a", "b"], [EIGHT] * 2, Deadline(60), ["a", "b"]))
    await until(lambda: batches)
    second = asyncio.create_task(batcher.ask(["a"], [EIGHT], Deadline(90), ["a"]))
    await asyncio.sleep(0)
    joined.set()
    assert (["ok", "ok"], ["ok"], [2, 2]) == (await first, await second, batches)


async def test_an_outcome_is_kept_if_the_second_sending_raises() -> None:
    """Only calls without an outcome are sent again, each alone, if the second sending of a batch raises."""
    batches: list[str] = []
    joined = asyncio.Event()

    async def send(items: Sequence[str], deadline: SharedDeadline) -> Sequence[str]:
        batches.append("".join(items))
        await joined.wait()
        if len(batches) == 2:
            raise ValueError("it breaks")
        return ["failed" if len(batches) == 1 and item != "c" else f"ok {item}" for item in items]

    batcher: Batcher[str, str] = Batcher(send, has_failed="failed".__eq__)
    first = asyncio.create_task(batcher.ask(["a", "b", "c"], [EIGHT] * 3, Deadline(60), ["a", "b", "c"]))
    await until(lambda: batches)
    second = asyncio.create_task(batcher.ask(["a"], [EIGHT], Deadline(90), ["a"]))
    await asyncio.sleep(0)
    joined.set()
    assert (["ok a", "ok b", "ok c"], ["ok a"]) == (await first, await second)
    assert ["abc", "ab", "a", "b"] == batches


async def test_who_is_to_blame_fails() -> None:
    """An item that spoils its batch fails alone: each of the batch is sent again by itself."""
    send = Lengths()
    batcher: Batcher[str, int] = Batcher(send)
    outcomes = await asyncio.gather(
        *(batcher.ask_one(text, EIGHT) for text in ("a", "", "abc")), return_exceptions=True
    )
    assert [1, "it is empty", 3] == [one if isinstance(one, int) else str(one) for one in outcomes]
    assert [3, 1, 1, 1] == [len(batch) for batch in send.batches]


async def test_nobody_waits_for_a_slow_neighbour() -> None:
    """Items of a spoiled batch have their outcomes as they come."""
    send = Lengths()

    async def slow(items: Sequence[str], deadline: SharedDeadline) -> Sequence[int]:
        if items == ["slow"]:
            await asyncio.sleep(3600)
        return await send(["", *items] if len(items) > 1 else items, deadline)

    batcher: Batcher[str, int] = Batcher(slow, window=0)
    waiting = asyncio.create_task(batcher.ask_one("slow", EIGHT))
    assert 3 == await asyncio.wait_for(batcher.ask_one("abc", EIGHT), 60)
    waiting.cancel()


@pytest.mark.parametrize("most", [0, 1])
async def test_too_few_outcomes(most: int) -> None:
    """A batch with too few outcomes is sent again one by one; an item that has none then fails."""
    batcher: Batcher[str, int] = Batcher(Lengths(most))
    calls = asyncio.gather(*(batcher.ask_one(text, EIGHT) for text in ("a", "ab")), return_exceptions=True)
    outcomes = await asyncio.wait_for(calls, 60)
    assert [1, 2] == outcomes if most else [ValueError] * 2 == [type(one) for one in outcomes]


@pytest.mark.parametrize("text", ["ab", ""])
async def test_a_caller_gives_up(text: str) -> None:
    """A caller that waits no longer is nothing to the others, whether its own item could be answered or not."""
    batcher: Batcher[str, int] = Batcher(Lengths())
    gone = asyncio.create_task(batcher.ask_one(text, BatchKey()))
    stays = asyncio.create_task(batcher.ask_one("abc", BatchKey()))
    await asyncio.sleep(0)
    gone.cancel()
    assert 3 == await stays


async def test_shutdown() -> None:
    """When the client shuts down, items in flight and items that wait are dropped, and nothing else is sent."""
    send = Lengths()
    send.go.clear()
    before = asyncio.all_tasks()
    asking = asyncio.create_task(
        Batcher(send).ask([f"{at}" for at in range(5)], [BatchKey(1, max_in_flight=2)] * 5, Deadline(60))
    )
    while len(send.batches) < 2:
        await asyncio.sleep(0)
    for task in asyncio.all_tasks() - before - {asking}:
        task.cancel()
    outcomes = await asyncio.wait_for(asking, 60)
    assert [ServiceError] * 5 == [type(one) for one in outcomes]
    assert [["0"], ["1"]] == send.batches


def test_loops_do_not_meet() -> None:
    """Calls of one event loop are never answered on another, even if the first ended while they waited."""
    batches: list[list[str]] = []

    async def send(items: Sequence[str], deadline: SharedDeadline) -> Sequence[int]:
        batches.append([*items])
        return [len(item) for item in items]

    batcher: Batcher[str, int] = Batcher(send)
    key = BatchKey(math.inf)

    async def begin() -> None:
        waiting = asyncio.create_task(batcher.ask_one("lost", key))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(begin())
    assert 2 == asyncio.run(batcher.ask_one("ab", key))
    assert ["ab"] == batches[-1]  # before it the lost one, where the first loop took longer than a batch gathers


class Held:
    """Sends batches that are never answered; remembers those that were sent and those that were cancelled."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.cancelled: list[list[str]] = []

    async def __call__(self, items: Sequence[str], deadline: SharedDeadline) -> Sequence[int]:
        self.sent.append([*items])
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append([*items])
            raise
        return []


def caller(batcher: Batcher[str, Any], items: Sequence[str], key: BatchKey = BatchKey()) -> asyncio.Task[Any]:  # noqa: B008
    """Return a caller of items, which others share that ask for the same."""
    return asyncio.create_task(batcher.ask(items, [key] * len(items), Deadline(60), items))


async def until(holds: Callable[[], object]) -> None:
    """Return when something holds."""
    while not holds():
        await asyncio.sleep(WINDOW)


async def leave(one: asyncio.Task[Any]) -> None:
    """Cancel a caller."""
    one.cancel()
    await asyncio.wait([one])
    assert one.cancelled()
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_nobody_waits_for_is_dropped() -> None:
    """When its last caller is cancelled a batch is, and what waits behind it is not sent."""
    send = Held()
    batcher: Batcher[str, int] = Batcher(send)
    first, second = (caller(batcher, ["a", "b", "c"], BatchKey(1, max_in_flight=1)) for _ in range(2))
    await until(lambda: send.sent)
    await leave(first)
    assert ([["a"]], []) == (send.sent, send.cancelled)
    await leave(second)
    assert ([["a"]], [["a"]]) == (send.sent, send.cancelled)


async def test_others_in_a_batch_keep_it() -> None:
    """A batch continues as long as somebody waits for one of its items."""
    send = Held()
    batcher: Batcher[str, int] = Batcher(send)
    first, second = (caller(batcher, [text]) for text in "ab")
    await until(lambda: send.sent)
    await leave(first)
    assert ([["a", "b"]], []) == (send.sent, send.cancelled)
    await leave(second)
    assert [["a", "b"]] == send.cancelled


async def test_who_comes_later_is_not_dropped() -> None:
    """An equal item that comes when the batch is just being dropped is sent again."""
    send = Held()
    batcher: Batcher[str, int] = Batcher(send)
    gone = caller(batcher, ["a"])
    await until(lambda: send.sent)
    gone.cancel()
    later = caller(batcher, ["a"])
    await until(lambda: len(send.sent) == 2)
    assert ([["a"], ["a"]], [["a"]]) == (send.sent, send.cancelled)
    await leave(later)


async def test_a_batch_within_a_batch_is_dropped() -> None:
    """What a batch asks of another batcher ends with it."""
    send = Held()
    inner: Batcher[str, int] = Batcher(send)

    async def pass_on(items: Sequence[str], deadline: SharedDeadline) -> Sequence[Any]:
        return await inner.ask(items, [BatchKey()] * len(items), deadline, items)

    one = caller(Batcher(pass_on), ["a"])
    await until(lambda: send.sent)
    await leave(one)
    await until(lambda: send.cancelled)
    assert [["a"]] == send.cancelled


async def test_group_of_several_callers() -> None:
    """A batch with `gather` waits for its size; after that time it is sent as it is, and nothing of it is kept."""
    send = Lengths()
    batcher: Batcher[str, int] = Batcher(send)
    group, other = BatchKey(3, "group", max_wait=60), BatchKey(3, "other", max_wait=5 * WINDOW)
    asked = (batcher.ask([text], [group], Deadline(60)) for text in ("a", "bb", "ccc"))
    assert [[1], [2], [3]] == await asyncio.gather(*asked)
    assert [1, 2] == await batcher.ask(["a", "bb"], [other, other], Deadline(60))
    assert [["a", "bb", "ccc"], ["a", "bb"]] == send.batches
    assert ({}, {}) == (batcher._queues, batcher._shared)


async def test_slot() -> None:
    """An item replaces the waiting one in its slot, also if its caller has gone; one in flight is not replaced."""
    send = Lengths()
    send.go.clear()
    batcher: Batcher[str, int] = Batcher(send)
    pair = BatchKey(2, "pair", max_wait=60)
    first, second = pair._replace(slot=1), pair._replace(slot=2)
    gone = asyncio.create_task(batcher.ask(["old"], [first], Deadline(60), ["old"]))
    await asyncio.sleep(0)
    gone.cancel()
    stays = asyncio.create_task(batcher.ask(["newer"], [first], Deadline(60), ["newer"]))
    fills = asyncio.create_task(batcher.ask(["b"], [second], Deadline(60), ["b"]))
    while not send.batches:
        await asyncio.sleep(WINDOW)
    again = asyncio.create_task(batcher.ask(["newer"], [first], Deadline(60), ["newer"]))
    late = asyncio.create_task(batcher.ask(["late"], [first], Deadline(5 * WINDOW), ["late"]))
    await asyncio.sleep(0)
    send.go.set()
    assert [[5], [1], [5]] == await asyncio.gather(stays, fills, again)
    [error] = await late
    assert isinstance(error, DeadlineError) and "1 of 2 members of its group have arrived" in str(error)
    assert [["newer", "b"]] == send.batches


async def test_a_second_caller_of_a_queued_item() -> None:
    """While an item is queued, answers to others extend the deadline of each caller that waits for it."""
    send = Lengths()
    send.go.clear()
    batcher: Batcher[str, int] = Batcher(send)
    single = BatchKey(1, max_in_flight=1)
    deadlines = [Deadline(60), Deadline(60)]
    first = asyncio.create_task(batcher.ask(["a", "bb", "ccc"], [single] * 3, deadlines[0], ["a", "bb", "ccc"]))
    await until(lambda: send.batches)
    second = asyncio.create_task(batcher.ask(["ccc"], [single], deadlines[1], ["ccc"]))
    await asyncio.sleep(0.01)
    unextended = Deadline(60)  # created after both, so its time is up last unless theirs are extended
    await asyncio.sleep(0.01)
    send.go.set()
    send.go.clear()  # lets the first batch go, and holds the second
    await until(lambda: len(send.batches) == 2)
    assert all(deadline.remaining() > unextended.remaining() for deadline in deadlines)
    send.go.set()
    assert ([1, 2, 3], [3]) == (await first, await second)
    assert [["a"], ["bb"], ["ccc"]] == send.batches


async def test_a_cancelled_single_item_is_dropped() -> None:
    """If the only caller of a single item is cancelled, the item's batch is cancelled."""
    send = Held()
    waiting = asyncio.create_task(Batcher(send).ask_one("a", BatchKey()))
    await until(lambda: send.sent)
    await leave(waiting)
    assert [["a"]] == send.cancelled
