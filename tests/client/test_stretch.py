"""No call works so long on the event loop that another one has to wait for all of its samples."""

from __future__ import annotations

import asyncio

import pytest

from rewardstack.core import event_loop, stretch
from rewardstack.core.stretch import MAX_SLICE, Stretch, slices
from rewardstack.pipeline.stages import Prepare
from rewardstack.score import Item


class Reader:
    """A scorer that notes which items it prepares."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def prepare(self, item: Item) -> Item:
        """Prepare an item."""
        self._order.append(item.solution)
        return item


async def test_calls_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each sample takes longer than a stretch, a call with one sample is done after another call's first ones."""
    monkeypatch.setattr(stretch, "SECONDS", -1.0)  # every stretch is over at once
    order: list[str] = []
    stage = Prepare(Reader(order), None)  # type: ignore[arg-type, var-annotated]
    many, one = ([Item(name, (), {})] * count for name, count in (("a", 100), ("b", 1)))
    await asyncio.gather(stage.prepare(many), stage.prepare(one))
    assert order.index("b") == 1 and len(order) == 101


async def test_short_work_does_not_rest() -> None:
    """A coroutine that has worked for less than a stretch continues, so short calls are not interrupted."""
    order: list[int] = []

    async def work(number: int) -> None:
        own = Stretch()
        for _ in range(3):
            order.append(number)
            await own.rest()

    stretch_of_an_hour = pytest.MonkeyPatch()
    stretch_of_an_hour.setattr(stretch, "SECONDS", 3600.0)
    await asyncio.gather(work(1), work(2))
    stretch_of_an_hour.undo()
    assert order == [1, 1, 1, 2, 2, 2]


def test_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices cover all items once; they grow while the caller is fast, and shrink to single items if it is slow."""
    for seconds, last in ((3600.0, MAX_SLICE), (-1.0, 1)):
        monkeypatch.setattr(stretch, "SECONDS", seconds)
        found = [range(2000)[part] for part in slices(2000)]
        assert [at for part in found for at in part] == [*range(2000)]
        assert max(map(len, found[-2:-1])) == last


def test_the_longest_stretch_is_reported() -> None:
    """The loop reports how long it has worked without a look at its files, if that was never longer."""
    reports: list[float] = []
    event_loop.report_stretches(reports.append)

    async def work(seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            pass

    loop = event_loop.LoopThread()
    try:
        loop.run(work(0.05))
        loop.run(asyncio.sleep(0))
    finally:
        loop.stop()
        loop.loop.close()
        event_loop.report_stretches(lambda seconds: None)
    assert reports == sorted(reports) and reports[-1] >= 0.05
