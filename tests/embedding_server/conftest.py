"""One embedding server at a time, shared by all tests that want one with the same flags."""

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
    """An interpreter that has sentence-transformers."""
    found = models_python()
    if found is None:
        pytest.skip("sentence-transformers is not installed: make up, or set MODELS_DIR to where it is")
    return found


@pytest.fixture(scope="session")
def serve(python: str) -> Iterator[Callable[[str], EmbeddingServer]]:
    """Gives the server with the flags that `tei.json` lists under a name; the one before it is stopped."""
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
    """A server with the flags as they are."""
    return serve("default")
