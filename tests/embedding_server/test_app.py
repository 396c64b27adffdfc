"""What a failing model looks like over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer

from services.embedding.tei_python import app
from services.embedding.tei_python.app import Handlers
from services.embedding.tei_python.batches import Limits
from services.embedding.tei_python.engine import Engine
from services.embedding.tei_python.metrics import Metrics
from services.embedding.tei_python.tokenization import Tokenization
from tests.embedding_server.fakes import Gated, Words

INFO = {"auto_truncate": True, "max_client_batch_size": 32, "served_model_name": "none"}


@pytest.fixture
def model() -> Gated:
    """The model behind the application."""
    return Gated()


@pytest.fixture
async def client(model: Gated) -> AsyncIterator[TestClient[Any, Any]]:
    """A client of the application."""
    metrics = Metrics(100)
    engine = Engine(model, Words(), Limits(1000, None, 100), 8, 1, metrics)
    handlers = Handlers(engine, cast(Tokenization, None), metrics, INFO, "cpu")
    async with TestClient(TestServer(app.create(handlers, None, 1000))) as client:
        yield client
    await engine.stop()


async def ask(client: TestClient[Any, Any], method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of an answer; None for an empty body."""
    async with client.request(method, path, json=body) as reply:
        text = await reply.text()
        return reply.status, json.loads(text) if text else None


async def test_a_failing_model_is_reported_as_tei_reports_it(client: TestClient[Any, Any], model: Gated) -> None:
    """While the model fails, requests get 424, health 503: core/src/lib.rs:20-21, http/server.rs:70-78, 1891-1902."""
    model.broken = RuntimeError("out of memory")
    said = "the model failed: out of memory"
    openai = {"message": said, "code": 424, "type": "Backend"}
    assert (200, None) == await ask(client, "GET", "/health")
    assert (424, {"error": said, "error_type": "Backend"}) == await ask(client, "POST", "/embed", {"inputs": "a"})
    assert (424, openai) == await ask(client, "POST", "/v1/embeddings", {"input": "a"})
    assert (503, {"error": f"unhealthy: {said}", "error_type": "Unhealthy"}) == await ask(client, "GET", "/health")


async def test_a_model_that_recovers_is_well(client: TestClient[Any, Any], model: Gated) -> None:
    """Health tries a model that has failed, so that a server which nobody asks any more recovers too."""
    model.broken = RuntimeError("out of memory")
    assert (await ask(client, "POST", "/embed", {"inputs": "a"}))[0] == 424
    model.broken = None
    assert (200, None) == await ask(client, "GET", "/health")
    assert (200, [[1, 1]]) == await ask(client, "POST", "/embed", {"inputs": "a", "normalize": False})
