"""Fuzzing in the small; `python -m tests.rules.fuzz --requests 10000` is the same at length."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.rules.conftest import RewardServer
from tests.rules.fuzz import Fuzzer


@pytest.mark.parametrize("requests", [50, pytest.param(300, marks=pytest.mark.nightly)])
def test_no_500(server: RewardServer, requests: int) -> None:
    """No request, well-formed or not, is answered by 500 or otherwise than the server's own document says."""
    fuzzer = Fuzzer(server.url, seed=0)
    fuzzer.run(requests)

    answered = Counter(status for _, status in fuzzer.counts.elements())
    endpoints = {operation for operation, _ in fuzzer.counts}
    assert fuzzer.counts.total() >= requests
    assert len(endpoints) == len({(path, method) for path, method in _operations(server)})
    assert {200, 400, 404} <= set(answered)


def _operations(server: RewardServer) -> list[tuple[str, str]]:
    paths = server.get("/openapi.json").json()["paths"]
    return [(path, method) for path, operations in paths.items() for method in operations]
