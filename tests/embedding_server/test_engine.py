"""The queue before the model, with models that fail and stall as no real one can be made to."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.embedding.tei_python.batches import Limits
from services.embedding.tei_python.engine import Ask, Engine
from services.embedding.tei_python.errors import (
    BackendError,
    EmptyError,
    ExpiredError,
    OverloadedError,
    ValidationError,
)
from services.embedding.tei_python.metrics import Metrics
from tests.embedding_server.fakes import SECONDS, Gated, Words

PERMITS = 8


@asynccontextmanager
async def running(model: Gated, metrics: Metrics | None = None, waste: int = 100) -> AsyncIterator[Engine]:
    """An engine on a model."""
    engine = Engine(model, Words(), Limits(1000, None, waste), PERMITS, 1, metrics or Metrics(100))
    try:
        yield engine
    finally:
        model.gate.set()
        await engine.stop()


def ask(*texts: str, deadline: float = math.inf, dimensions: int | None = None) -> Ask:
    """A request for some texts."""
    return Ask(texts, True, "right", None, dimensions, deadline)


async def stalled(model: Gated, engine: Engine) -> asyncio.Task[object]:
    """A request that the model is at, and stays at until its gate opens."""
    model.gate.clear()
    task: asyncio.Task[object] = asyncio.create_task(engine.embed(ask("first")))
    assert await asyncio.to_thread(model.entered.wait, SECONDS)
    return task


async def queued(metrics: Metrics, size: int) -> None:
    """Returns when so many inputs wait for the model."""
    end = time.monotonic() + SECONDS
    while metrics.queue_size != size:
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


async def test_vectors_come_in_the_order_of_the_inputs() -> None:
    """Texts of any lengths come back in their own order, though the model reads them by length."""
    async with running(Gated(), waste=0) as engine:
        vectors, spent = await engine.embed(ask("aa b", "c", "d e f g", "hhh"))
    assert vectors.tolist() == [[2, 3], [1, 1], [4, 4], [1, 3]]
    assert spent.tokens == 8


async def test_requests_share_a_pass() -> None:
    """What comes while the model is busy goes into one pass, whoever sent it."""
    model, metrics = Gated(), Metrics(100)
    async with running(model, metrics) as engine:
        first = await stalled(model, engine)
        others = [asyncio.create_task(engine.embed(ask(text))) for text in ("a a", "b b", "c c")]
        await queued(metrics, 3)
        model.gate.set()
        await asyncio.gather(first, *others)
    assert model.batches == [[1], [2, 2, 2]]


async def test_what_nobody_waits_for_is_not_embedded() -> None:
    """A request whose sender went away while it waited never reaches the model, and is counted as dropped."""
    model, metrics = Gated(), Metrics(100)
    async with running(model, metrics) as engine:
        first = await stalled(model, engine)
        left = asyncio.create_task(engine.embed(ask("a b c")))
        stays = asyncio.create_task(engine.embed(ask("d d")))
        await queued(metrics, 2)
        left.cancel()
        await asyncio.wait([left])
        model.gate.set()
        await asyncio.gather(first, stays)
    assert model.batches == [[1], [2]]
    assert 'te_request_failure{err="dropped"} 1' in metrics.text()


async def test_a_deadline_ends_the_wait() -> None:
    """A request whose deadline passes in the queue is refused then, and never reaches the model."""
    model, metrics = Gated(), Metrics(100)
    async with running(model, metrics) as engine:
        first = await stalled(model, engine)
        with pytest.raises(ExpiredError):
            await engine.embed(ask("a b c", deadline=time.monotonic() + 0.05))
        model.gate.set()
        await first
    assert model.batches == [[1]]


async def test_permits_come_back() -> None:
    """Inputs beyond the permits are refused at once; whatever ends a request gives its permits back."""
    model = Gated()
    async with running(model) as engine:
        first = await stalled(model, engine)
        with pytest.raises(OverloadedError):
            await engine.embed(ask(*"abcdefgh"))
        waits = asyncio.create_task(engine.embed(ask(*"abcdefg")))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.wait([waits])
        with pytest.raises(EmptyError):
            await engine.embed(ask(*"abcdef", ""))
        model.gate.set()
        await first
        assert (await engine.embed(ask(*"abcdefgh")))[0].shape == (8, 2)


async def test_what_tei_checks_first_is_checked_first() -> None:
    """The first input's fault beats the second's."""
    async with running(Gated()) as engine:
        with pytest.raises(EmptyError):
            await engine.embed(ask("", "a", dimensions=3))
        with pytest.raises(ValidationError):
            await engine.embed(ask("a", "", dimensions=3))


@pytest.mark.parametrize("broken", [RuntimeError("out of memory"), math.nan, math.inf])
async def test_a_failing_model_is_said_to_fail(broken: Exception | float) -> None:
    """A model that raises, or returns what is no number, fails the requests it was at and no later ones."""
    model = Gated()
    async with running(model) as engine:
        model.broken = broken
        with pytest.raises(BackendError, match="out of memory|not finite"):
            await engine.embed(ask("a", "b"))
        assert not engine.well
        model.broken = None
        assert (await engine.embed(ask("a")))[0].tolist() == [[1, 1]]
        assert engine.well
