"""Find or start an embedding server for scripts that run by hand and under pytest."""

from __future__ import annotations

import os
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

from tests.embedding_server.served import embedding_server, models_python

NONE = "EMBEDDING_SERVER_URL is not set, and no interpreter here has sentence-transformers (`make up` makes one)"


@contextmanager
def embedding_url() -> Iterator[str]:
    """Yield the first URL of EMBEDDING_SERVER_URL; if it is not set, run a server for the time of the block.

    Raises:
        unittest.SkipTest: the variable is not set, and no server can be started.
    """
    if given := os.environ.get("EMBEDDING_SERVER_URL"):
        yield given.split(",")[0].strip()
        return
    python = models_python()
    if python is None:
        raise unittest.SkipTest(NONE)
    with embedding_server(python) as server:
        yield server.url
