"""The queue and the routes over models that fail and stall as no real one can be made to."""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient, TestServer
from numpy.typing import NDArray

from services.embedding.tei_python import server, settings
from services.embedding.tei_python.server import METRICS, Server, TeiError, choose_batch
from tests.support.table import Table

SECONDS = 60.0
"""Longer than anything takes that does not hang."""
PERMITS = 8
DEEP = 100_000

Client = TestClient[Any, Any]


class FakeModel:
    """A model that waits for a gate; tokens are the lengths of words, a vector is the number and the sum of tokens."""

    on_gpu = True

    def __init__(self) -> None:
        self.info = {"model_id": "fake"}
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.batches: list[list[int]] = []
        self.broken: Exception | float | None = None

    def encode(self, value: Any, body: Any) -> list[int]:
        """Return the length of each word."""
        if not value:
            raise TeiError(400, "Empty", "empty")
        return [len(word) for word in str(value).split()]

    def embed(self, batch: list[list[int]]) -> NDArray[np.float32]:
        """Return the vectors, or what is broken."""
        self.batches.append([len(tokens) for tokens in batch])
        self.entered.set()
        assert self.gate.wait(SECONDS)
        if isinstance(self.broken, Exception):
            raise self.broken
        rows = [[len(tokens), sum(tokens)] for tokens in batch]
        return np.asarray(rows, dtype=np.float32) * np.float32(1.0 if self.broken is None else self.broken)


@pytest.fixture
def model() -> FakeModel:
    """The model behind the routes."""
    return FakeModel()


@pytest.fixture
async def client(model: FakeModel) -> AsyncIterator[Client]:
    """A client of the routes; PERMITS inputs may be in flight."""
    limits = ["--max-concurrent-requests", str(PERMITS), "--max-client-batch-size", "32"]
    application = Server(model, settings.parse(limits, {})).application
    async with TestClient(TestServer(application, handler_cancellation=True)) as client:
        yield client
        model.gate.set()


async def ask(client: Client, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Return status and JSON of a reply; None for an empty body."""
    async with client.request(method, path, json=body, headers=headers) as reply:
        return reply.status, await parsed(reply)


async def parsed(reply: ClientResponse) -> Any:
    """Return the JSON of a reply; None for an empty body."""
    text = await reply.text()
    return json.loads(text) if text else None


async def embed(client: Client, *texts: str, **headers: str) -> tuple[int, Any]:
    """Return the reply to a request for the vectors of some texts."""
    return await ask(client, "POST", "/embed", {"inputs": texts, "normalize": False}, **headers)


async def stalled(client: Client, model: FakeModel) -> asyncio.Task[tuple[int, Any]]:
    """Send a request that the model is working on until its gate opens."""
    model.gate.clear()
    task = asyncio.create_task(embed(client, "first"))
    assert await asyncio.to_thread(model.entered.wait, SECONDS)
    return task


def metric(name: str, **labels: str) -> float:
    """Return the value of a metric; 0 if it has none yet."""
    return METRICS.get_sample_value(name, labels) or 0.0


async def until(name: str, value: float, **labels: str) -> None:
    """Return when a metric has a value."""
    end = time.monotonic() + SECONDS
    while metric(name, **labels) != value:
        assert time.monotonic() < end, f"{name} is {metric(name, **labels)}, not {value}"
        await asyncio.sleep(0.005)


async def test_vectors_come_in_the_order_of_the_inputs(client: Client, model: FakeModel) -> None:
    """Texts of different lengths come back in their order, though the model gets them by length."""
    many = " ".join("d" for _ in range(2000))
    assert await embed(client, "aa b", many, "c", "hhh") == (200, [[2, 3], [2000, 2000], [1, 1], [1, 3]])
    assert model.batches == [[2, 1, 1], [2000]]


async def test_requests_share_a_pass(client: Client, model: FakeModel) -> None:
    """Texts that arrive while the model is busy go into one pass, even from different clients."""
    first = await stalled(client, model)
    others = [asyncio.create_task(embed(client, text)) for text in ("a a", "b b", "c c")]
    await until("te_queue_size", 3)
    model.gate.set()
    await asyncio.gather(first, *others)
    assert model.batches == [[1], [2, 2, 2]]


async def test_what_nobody_waits_for_is_not_embedded(client: Client, model: FakeModel) -> None:
    """A request whose client disconnects while it waits never reaches the model, and counts as dropped."""
    before = metric("te_request_failure_total", err="dropped")
    first = await stalled(client, model)
    left = asyncio.create_task(embed(client, "a b c"))
    stays = asyncio.create_task(embed(client, "d d"))
    await until("te_queue_size", 2)
    left.cancel()
    await until("te_request_failure_total", before + 1, err="dropped")
    model.gate.set()
    await asyncio.gather(first, stays)
    assert model.batches == [[1], [2]]


async def test_a_deadline_ends_the_wait(client: Client, model: FakeModel) -> None:
    """A request whose deadline passes in the queue gets 504 then, and never reaches the model."""
    before = metric("te_request_failure_total", err="dropped")
    first = await stalled(client, model)
    status, refusal = await embed(client, "a b c", **{"X-Request-Deadline-Ms": "50"})  # expires
    assert (status, refusal["error_type"]) == (504, "Dropped")
    assert metric("te_request_failure_total", err="dropped") == before + 1
    model.gate.set()
    await first
    assert model.batches == [[1]]


@pytest.mark.parametrize("header", ["-1", "soon", "1e9", "9" * 12, ""])
async def test_a_malformed_deadline_is_ignored(client: Client, header: str) -> None:
    """A header that is not a number of milliseconds says nothing."""
    assert await embed(client, "a", **{"X-Request-Deadline-Ms": header}) == (200, [[1, 1]])


async def test_permits_come_back(client: Client, model: FakeModel) -> None:
    """Inputs beyond the permits are refused at once; whatever ends a request gives its permits back."""
    dropped = metric("te_request_failure_total", err="dropped")
    first = await stalled(client, model)
    assert (await embed(client, *"abcdefgh"))[0] == 429
    waits = asyncio.create_task(embed(client, *"abcdefg"))
    await until("te_queue_size", 7)
    waits.cancel()
    await until("te_request_failure_total", dropped + 1, err="dropped")
    assert (await embed(client, *"abcdef", ""))[0] == 400
    model.gate.set()
    await first
    assert (await embed(client, *"abcdefgh"))[0] == 200


async def test_a_failing_model_is_reported_as_tei_reports_it(client: Client, model: FakeModel) -> None:
    """While the model fails, requests get 424, health 503: core/src/lib.rs:20-21, http/server.rs:70-78, 1891-1902."""
    model.broken = RuntimeError("out of memory")
    message = "the model failed: out of memory"
    openai = {"message": message, "code": 424, "type": "Backend"}
    assert await ask(client, "GET", "/health") == (200, None)
    assert await embed(client, "a", "b") == (424, {"error": message, "error_type": "Backend"})
    assert await ask(client, "POST", "/v1/embeddings", {"input": "a"}) == (424, openai)
    health = {"error": f"unhealthy: {message}", "error_type": "Unhealthy"}
    assert await ask(client, "GET", "/health") == (503, health)


async def test_what_is_left_of_a_failed_request_is_dropped(client: Client, model: FakeModel) -> None:
    """A request of several passes that fails in one of them does not go through all."""
    model.broken = RuntimeError("out of memory")
    texts = [" ".join("d" * length) for length in (1, 2000, 4000, 8000, 16000)]
    assert (await embed(client, *texts))[0] == 424
    model.broken = None
    assert (await embed(client, "a"))[0] == 200
    assert len(model.batches) < len(texts)


@pytest.mark.parametrize("broken", [RuntimeError("out of memory"), math.nan, math.inf])
async def test_a_model_that_recovers_is_healthy(client: Client, model: FakeModel, broken: Exception | float) -> None:
    """A model that raises, or returns no numbers, fails the requests it works on; health tries it again."""
    model.broken = broken
    status, refusal = await embed(client, "a")
    assert status == 424
    assert "out of memory" in refusal["error"] or "not finite" in refusal["error"]
    model.broken = None
    assert await ask(client, "GET", "/health") == (200, None)
    assert await embed(client, "a") == (200, [[1, 1]])


async def test_a_hung_model_is_unhealthy(client: Client, model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forward pass that does not end fails /health, which a busy model does not, and /health recovers with it."""
    first = await stalled(client, model)
    assert await ask(client, "GET", "/health") == (200, None)
    monkeypatch.setattr(server, "HUNG_SECONDS", -1.0)
    status, refusal = await ask(client, "GET", "/health")
    assert (status, refusal["error_type"]) == (503, "Unhealthy")
    model.gate.set()
    await first
    assert await ask(client, "GET", "/health") == (200, None)


@pytest.mark.parametrize("path", ["/similarity", "/tokenize", "/decode", "/invocations", "/embeddings", "/"])
async def test_dropped_routes(client: Client, path: str) -> None:
    """Routes of TEI that no reward client needs are not found."""
    assert await ask(client, "POST", path, {"inputs": "a"}) == (404, None)


async def test_a_vector_of_zeros_is_not_normalized(client: Client, model: FakeModel) -> None:
    """A vector without a length is not divided by it."""
    model.broken = 0.0
    assert await ask(client, "POST", "/embed", {"inputs": "a", "normalize": True}) == (200, [[0, 0]])


@pytest.mark.parametrize(
    ("inputs", "count"),
    [("a", 1), ([1, 2], 1), (["a"], 1), ([[1, 2]], 1), ([[1], "a"], 2), (["a", "b", "c"], 3)],
)
async def test_token_ids_are_told_from_batches(client: Client, inputs: object, count: int) -> None:
    """A list of numbers is one input, a list of anything else several."""
    method = "batch" if isinstance(inputs, list) and not isinstance(inputs[0], int) else "single"
    before = metric("te_request_count_total", method=method)
    status, vectors = await ask(client, "POST", "/embed", {"inputs": inputs})
    assert (status, len(vectors)) == (200, count)
    assert metric("te_request_count_total", method=method) == before + 1


HOSTILE = [
    (b'{"inputs":' + b"[" * DEEP + b"]" * DEEP + b"}", 400, "recursion"),
    (b'{"x":' * DEEP + b"1" + b"}" * DEEP, 400, "recursion"),
    (b'{"inputs":"' + b"\\ud800" * DEEP + b'"}', 400, "surrogates not allowed"),
    (b'{"inputs":["a","\\ud800"]}', 400, "surrogates not allowed"),
    (b'{"inputs":"\xff"}', 400, "not JSON"),
    (b"\xff\xfe{\x00}\x00", 400, "not JSON"),
    (b'{"inputs":"a","dimensions":' + b"9" * DEEP + b"}", 400, "not JSON"),
    (b'{"inputs":"a","dimensions":1e999}', 422, "`dimensions`"),
    (b'{"inputs":[NaN]}', 400, "NaN"),
    (b'{"inputs":"a","x":-Infinity}', 400, "-Infinity"),
    (b'{"inputs":"a","x":{"y":1,"y":2}}', 422, "`y` is given twice"),
    (b"{" + b",".join(b'"%d":1' % index for index in range(DEEP)) + b',"7":1}', 422, "`7` is given twice"),
    (b'{"inputs":["a"' + b",5" * DEEP + b"]}", 422, "`inputs`"),
    (b'{"inputs":[[1],' + b"[-1]," * DEEP + b"2]}", 422, "`inputs`"),
    (b'{"inputs":[true]}', 422, "`inputs`"),
    (b'{"inputs":[1.0]}', 422, "`inputs`"),
    (b'{"inputs":"a","normalize":"true"}', 422, "`normalize`"),
]


async def test_hostile_bodies_are_refused(client: Client, table: Table) -> None:
    """Depth, size and broken values by the hundred thousand are refused like a single one, in a short message."""
    for body, status, words in HOSTILE:
        with table.case(repr(body[:40])):
            async with client.post("/embed", data=body, headers={"Content-Type": "application/json"}) as reply:
                message = (await reply.json())["error"]
                assert reply.status == status
                assert words in message
                assert len(message) < 300


def test_the_oldest_is_always_in_the_batch() -> None:
    """Whatever waits, nobody starves: the oldest input is in the next pass."""
    rng = random.Random(0)
    for _ in range(300):
        lengths = [rng.randint(1, 300) for _ in range(rng.randint(1, 40))]
        assert 0 in choose_batch(lengths, rng.randint(1, 1000), rng.choice([None, 1, 4]))


def test_limits_hold() -> None:
    """No pass has more padded tokens or inputs than it may, or more padding than its share."""
    rng = random.Random(1)
    for _ in range(300):
        lengths = [rng.randint(1, 300) for _ in range(rng.randint(1, 40))]
        tokens, inputs = rng.randint(300, 4000), rng.choice([None, 1, 4])
        batch = [lengths[index] for index in choose_batch(lengths, tokens, inputs)]
        padded = max(batch) * len(batch)
        assert padded <= tokens
        assert padded - sum(batch) <= tokens / server.PADDING
        assert len(batch) <= (inputs or len(batch))


def test_like_lengths_go_together() -> None:
    """The oldest takes those of its own length with it, the older first, and leaves others for later passes."""
    assert {0, 2, 4} == choose_batch([10, 200, 10, 200, 10], 640, None)
    assert {0, 2} == choose_batch([200, 10, 200, 10], 640, None)
    assert {0, 1} == choose_batch([10, 10, 10], 640, 2)


def test_a_longer_one_counts_for_all() -> None:
    """A longer input pads every one before it: it is taken only within the share of padding."""
    assert {0, 1, 2, 3} == choose_batch([10, 10, 10, 12], 640, None)
    assert {0, 1, 2} == choose_batch([10, 10, 10, 17], 640, None)


def test_an_input_longer_than_a_pass_goes_alone() -> None:
    """An input of more tokens than a pass has is read all the same, by itself."""
    assert {0} == choose_batch([2000, 5, 5], 1000, None)
