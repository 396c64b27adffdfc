"""The result cache can be off: by a setting of client, server and workers, by a sample's own option."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as redis_client

from rewardstack import Request, score
from rewardstack.settings import DEFAULTS
from tests.rules.conftest import RewardServer, running
from tests.rules.test_result_cache import CHEAP, DEAR, commands, statuses, variables
from tests.support.servers import Redis

__all__ = ["variables"]
SAMPLES = [*CHEAP, *DEAR]
UNCACHED = [{**one, "extra_info": {**one["extra_info"], "cache_enabled": False}} for one in SAMPLES]


def client_statuses(samples: list[dict[str, object]]) -> set[tuple[str, bool]]:
    """What a client of this process says of samples."""
    return {(one.status, one.cached) for one in score([Request(**one) for one in samples])}  # type: ignore[arg-type]


def test_a_server_without_its_cache(tmp_path: Path, redis: Redis, variables: dict[str, str]) -> None:
    """With `REWARD_CACHE=off` a server scores the same samples anew each time, and leaves Redis alone."""
    with running(tmp_path, "--workers", "1", REWARD_CACHE="off", **variables) as server:
        for _ in range(2):
            assert {("ok", False)} == statuses(server, *SAMPLES)
    assert set() == commands(redis)
    assert 0 == redis_client.Redis.from_url(redis.url).dbsize()


@pytest.fixture
def server(tmp_path: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[RewardServer]:
    """A server that has scored all samples before, to which REWARD_SERVER_URL points."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    with running(tmp_path, "--workers", "1", **variables) as one:
        assert {("ok", False)} == statuses(one, *SAMPLES)
        assert {("ok", True)} == statuses(one, *SAMPLES)
        monkeypatch.setenv("REWARD_SERVER_URL", one.url)
        yield one


def test_samples_without_it(server: RewardServer) -> None:
    """`cache_enabled: false` is a sample's own option for whatever scores it, asked for directly or by a client."""
    for _ in range(2):
        assert {("ok", False)} == statuses(server, *UNCACHED)
        assert {("ok", False)} == client_statuses(UNCACHED)
    assert {("ok", True)} == statuses(server, *SAMPLES)


def test_a_client_without_it(server: RewardServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client with `REWARD_CACHE=off` has scores anew from a server whose own cache is on."""
    monkeypatch.setenv("REWARD_CACHE", "off")
    for _ in range(2):
        assert {("ok", False)} == client_statuses(SAMPLES)
    monkeypatch.setenv("REWARD_CACHE", "on")
    assert {("ok", True)} == client_statuses(SAMPLES)


def test_a_client_that_asks_directly(variables: dict[str, str], redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """So do judge and embedding server where the client asks them itself; Redis is not even connected to."""
    for name, value in {**variables, "REWARD_CACHE": "off"}.items():
        monkeypatch.setenv(name, value)
    asked = [one for one in DEAR if "remote" in one["data_source"] and "rule" not in one["data_source"]]
    for _ in range(2):
        assert {("ok", False)} == client_statuses(asked)
    assert set() == commands(redis)
