"""`rewardstack check` on an embedding server: what works, and the remedy for what does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.check_command import check
from tests.support.servers import FaultServer

TROUBLES: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"key": "secret"}, "set EMBEDDING_SERVER_API_KEY to one of the server's keys (TEI"),
    "neither path": ({"embed": False, "openai": False, "info": None}, "another service answers there"),
    "error": ({"mode": "500"}, "look at the service's log"),
    "overload": ({"mode": "429"}, "the server is overloaded, or its rate limit is reached; try again later"),
    "not ready": ({"mode": "503"}, "the server is not ready"),
    "no vectors": ({"mode": "garbage"}, "it is not an embedding server, or it is broken"),
    "one vector less": ({"mode": "short"}, "it is not an embedding server, or it is broken"),
    "no numbers": ({"mode": "nan"}, "its model is broken"),
    "meaningless": ({"mode": "zero"}, "check that the model is for sentence embeddings"),
}


@pytest.mark.parametrize(
    "state", [{}, {"embed": False}, {"embed": False, "info": None, "models": [{"id": "stand-in"}]}]
)
def test_works(state: dict[str, Any], server: FaultServer) -> None:
    """A server of either protocol is healthy, and its model is named."""
    server.set(**state)
    status, output = check()
    assert 0 == status, output
    assert "stand-in" in output


@pytest.mark.parametrize(("state", "remedy"), TROUBLES.values(), ids=TROUBLES)
def test_remedies(state: dict[str, Any], remedy: str, server: FaultServer) -> None:
    """What is wrong is said with its remedy."""
    server.set(**state)
    status, output = check()
    assert 1 == status
    assert remedy in output


def test_gone(server: FaultServer) -> None:
    """A server that is not there is said to be."""
    server.kill()
    status, output = check()
    assert 1 == status
    assert " start it with `make up`, or correct EMBEDDING_SERVER_URL" in output
