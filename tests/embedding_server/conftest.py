"""One embedding server at a time, shared by all tests that want one with the same flags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.embedding_server.served import EmbeddingServer, embedding_server, models_python

TEI = json.loads((Path(__file__).parents[1] / "cases/tei.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def python() -> str:
    """An interpreter that has sentence-transformers."""
    found = models_python()
    if found is None:
        pytest.skip("sentence-transformers is not installed: make up, or set MODELS_DIR to where it is")
    return found


@pytest.fixture(scope="session", params=["default"])
def server(request: pytest.FixtureRequest, python: str) -> Iterator[EmbeddingServer]:
    """A server with the flags that `tei.json` lists under a name, `default` unless a test asks for another."""
    with embedding_server(python, *TEI["servers"][request.param]) as started:
        yield started
