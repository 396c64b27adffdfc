"""Vectors in Redis: how they stand there, and that none is taken which is not what it should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import redis as redis_client

from rewardstack import Request, score
from rewardstack.scorers.embedding.vectors import decode_vector, encode_vector
from tests.client.conftest import Script
from tests.support.servers import FaultServer, Redis
from tests.support.waiting import eventually

KEY = "rewardstack:1:0123456789abcdef"
VECTOR = np.array([0.5, -0.25, 0.0], dtype=np.float16)
WRITTEN = encode_vector(KEY, VECTOR)

POISONED = {
    "nothing": b"",
    "another key's": encode_vector("rewardstack:1:another-key", VECTOR),
    "cut": WRITTEN[:-1],
    "cut by a number": WRITTEN[:-2],
    "longer": WRITTEN + b"\0\0",
    "of no numbers": WRITTEN[:8] + bytes(4),
    "of more numbers than it says": WRITTEN[:8] + (2**31).to_bytes(4, "little") + WRITTEN[12:],
    "not a number": encode_vector(KEY, np.array([np.nan, 0.0, 1.0], dtype=np.float16)),
    "infinite": encode_vector(KEY, np.array([np.inf, 0.0, 1.0], dtype=np.float16)),
    "a score": b'["89abcdef",1.0,"embedding"]',
}


def test_there_and_back() -> None:
    """What is written is read, in two bytes a number and twelve more."""
    found = decode_vector(KEY, WRITTEN)
    assert found is not None
    assert (VECTOR.tolist(), np.float16, 12 + 6) == (found.tolist(), found.dtype, len(WRITTEN))


@pytest.mark.parametrize("data", POISONED.values(), ids=POISONED)
def test_poisoned(data: bytes) -> None:
    """What is no vector of this key is not taken for one."""
    assert decode_vector(KEY, data) is None


def test_poisoned_redis_entries_are_replaced(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """A new process that finds nonsense in Redis asks the server and replaces the entries."""
    score([Request("embedding_remote", "abc", "abd")])
    connection = redis_client.Redis.from_url(redis.url)
    eventually(lambda: connection.dbsize() == 3)
    connection.mset(dict.fromkeys(connection.scan_iter(), b"nonsense"))
    script = """
        import logging
        from rewardstack import Request, score
        logging.disable()
        one = score([Request("embedding_remote", "abc", "abd")])[0]
        print(one.status, one.cached)
    """
    assert "ok False" == run_script(script)
    assert "ok True" == run_script(script)
    assert 4 == server.stats()["texts"]


def test_of_another_length(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """A forged vector is found out by the model's own beside it, also by a process that had none of these before."""
    score([Request("embedding_remote", "abc", "abd")])
    connection = redis_client.Redis.from_url(redis.url)
    eventually(lambda: connection.dbsize() == 3)
    stored: dict[str, Any] = {key.decode(): connection.get(key) for key in connection.scan_iter()}
    forged = next(key for key, data in stored.items() if data[:1] != b"[")
    connection.flushall()
    connection.set(forged, encode_vector(forged, VECTOR[:2]))
    script = """
        import logging
        from rewardstack import Request, score
        logging.disable()
        one = score([Request("embedding_remote", "abc", "abd")])[0]
        print(one.status, one.cached)
    """
    assert "ok False" == run_script(script)
    eventually(lambda: connection.get(forged) == stored[forged])


def test_redis_gone(server: FaultServer, redis: Redis) -> None:
    """Without Redis vectors are computed all the same."""
    redis.kill()
    assert "ok" == score([Request("embedding_remote", "abc", "abd")])[0].status


def test_expire(server: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors stay as long as scores."""
    monkeypatch.setenv("REWARD_CACHE_TTL", "1000")
    score([Request("embedding_remote", "abc", "abd")])
    connection = redis_client.Redis.from_url(redis.url)
    eventually(lambda: connection.dbsize() == 3)
    assert [True] * 3 == [990 < connection.ttl(key) <= 1000 for key in connection.scan_iter()]
