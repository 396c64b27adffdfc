"""A smoke test of fuzzing; `python -m tests.rules.fuzz --requests 10000` does the same at length."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.rules.conftest import RewardServer

REQUESTS = 300


@pytest.mark.nightly
def test_no_500(server: RewardServer) -> None:
    """No request, well-formed or not, is answered by 500 or otherwise than the server's own document says."""
    from tests.rules.fuzz import Fuzzer  # takes a second

    fuzzer = Fuzzer(server.url, seed=0)
    fuzzer.run(REQUESTS)

    answered = Counter(status for _, status in fuzzer.counts.elements())
    endpoints = {operation for operation, _ in fuzzer.counts}
    assert fuzzer.counts.total() >= REQUESTS
    assert len(endpoints) == len({(path, method) for path, method in _operations(server)})
    assert {200, 400, 404} <= set(answered)


def _operations(server: RewardServer) -> list[tuple[str, str]]:
    paths = server.get("/openapi.json").json()["paths"]
    return [(path, method) for path, operations in paths.items() for method in operations]
