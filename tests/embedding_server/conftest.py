"""Run one embedding server at a time, which consecutive tests with the same flags share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.embedding_server.served import EmbeddingServer, embedding_server, models_python

TEI = json.loads((Path(__file__).parents[1] / "cases/tei.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def python(needs_model: None) -> str:
    """Return an interpreter with sentence-transformers."""
    found = models_python()
    if found is None:
        pytest.skip("sentence-transformers is not installed: make up, or set MODELS_DIR to where it is")
    return found


@pytest.fixture(scope="session")
def serve(python: str) -> Iterator[Callable[[str], EmbeddingServer]]:
    """Return a function that returns the server with the flags of a name in `tei.json`, and stops any other server."""
    with ExitStack() as running:
        started: dict[str, EmbeddingServer] = {}

        def get(name: str) -> EmbeddingServer:
            if name not in started or started[name].process.poll() is not None:
                running.pop_all().close()
                started.clear()
                started[name] = running.enter_context(embedding_server(python, *TEI["servers"][name]))
            return started[name]

        yield get


@pytest.fixture
def server(serve: Callable[[str], EmbeddingServer]) -> EmbeddingServer:
    """Return the server with default flags."""
    return serve("default")
