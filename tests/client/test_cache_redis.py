"""The result cache on a real Redis: what is kept, who may read it, and that its faults cost no score."""

from __future__ import annotations

import itertools
import re
import threading

import pytest
import redis as redis_client

from rewardstack import Request, Score, score
from tests.client.conftest import Script
from tests.support.servers import FaultServer, Redis, free_port
from tests.support.waiting import eventually

ROUNDS = 20
NEW_PROCESS = """
    from rewardstack import Request, score
    from rewardstack.cache import link, writer
    from rewardstack.core import event_loop
    writer.FLUSH_TIMEOUT = event_loop.CLOSING_TIME = link.TIMEOUT = 60.0  # a busy machine is slow to write
    scores = score([Request("math", f"kept {at}", "1") for at in range(500)])
    print({(one.status, one.cached, one.value == len(f"kept {at}")) for at, one in enumerate(scores)})
"""


def kept(label: str, count: int = 500) -> list[Request]:
    """Different samples."""
    return [Request("math", f"{label} {at}", "1") for at in range(count)]


def statuses(scores: list[Score]) -> set[str]:
    """The different statuses."""
    return {one.status for one in scores}


def test_new_process_reads_what_another_scored(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """A new process scores from Redis alone what this one scored, without a question to the server."""
    assert {"ok"} == statuses(score(kept("kept")))
    eventually(lambda: redis_client.Redis.from_url(redis.url).dbsize() == 500)
    asked = server.stats()["items"]
    assert "{('ok', True, True)}" == run_script(NEW_PROCESS)
    assert asked == server.stats()["items"]


def test_only_ok_is_kept(server: FaultServer, redis: Redis) -> None:
    """A failure leaves nothing in the cache, and the next call asks again."""
    server.set(mode="garbage")
    assert {"failed"} == statuses(score(kept("lost")))
    assert 0 == redis_client.Redis.from_url(redis.url).dbsize()
    server.set(mode="ok")
    assert {"ok"} == statuses(score(kept("lost")))


def test_unreachable(server: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A cache that cannot be reached costs no score, and a warning with one sentence says why."""
    monkeypatch.setenv("REWARD_CACHE_URL", f"redis://127.0.0.1:{free_port()}/0")
    assert {"ok"} == statuses(score(kept("without a cache", 3)))
    line = next((one for one in caplog.messages if "cache" in one), "")
    assert re.fullmatch(r"the result cache cannot be read: .*[^.]; scoring continues without it", line), line


def test_entries_expire(server: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry has the time to live that the settings say."""
    monkeypatch.setenv("REWARD_CACHE_TTL", "1000000")
    score(kept("mortal", 3))
    connection = redis_client.Redis.from_url(redis.url)
    eventually(lambda: connection.dbsize() == 3)
    assert [True] * 3 == [990_000 < connection.ttl(key) <= 1_000_000 for key in connection.scan_iter()]


def test_tenants_do_not_share(server: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has another key has results of their own, and the key itself stands nowhere in Redis."""
    for key in ("", "alice-key", "bob-key"):
        monkeypatch.setenv("REWARD_SERVER_API_KEY", key)
        assert [False] == [one.cached for one in score([Request("math", "whose", "1")])]
    assert 3 == server.stats()["items"]
    assert not [name for name in redis_client.Redis.from_url(redis.url).scan_iter() if b"alice" in name]


def test_new_fingerprint_is_a_new_key(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """When the server's function changes, what it scored before is not read again."""
    script = NEW_PROCESS.replace("500", "5")
    assert "{('ok', False, True)}" == run_script(script)
    assert "{('ok', True, True)}" == run_script(script)
    server.set(fingerprint="changed")
    assert "{('ok', False, True)}" == run_script(script)


def test_poisoned_values_are_not_taken(server: FaultServer, redis: Redis, run_script: Script) -> None:
    """Samples whose values are not scores, or belong to another key, are scored again, and the values are replaced."""
    script = "\n    import logging\n    logging.disable()" + NEW_PROCESS.replace("500", "5")
    run_script(script)
    connection = redis_client.Redis.from_url(redis.url, decode_responses=True)
    names = list(connection.scan_iter())
    foreign = str(connection.get(names[0]))
    for name, poison in zip(names[1:], ["", "nan", '["x", NaN, "s"]', foreign], strict=True):
        connection.set(name, poison)
    connection.set(names[0], "\x80\x04K\x01.")
    assert "{('ok', False, True)}" == run_script(script)
    assert "{('ok', True, True)}" == run_script(script)


@pytest.mark.parametrize("fault", ["stopped", "paused", "full"])
def test_fault_in_mid_run(server: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Redis stopped, paused or full in mid-run costs no sample; one that hangs is not asked by each call."""
    monkeypatch.setattr("rewardstack.cache.link.RETRY_AFTER", 3600.0)
    monkeypatch.setattr("rewardstack.cache.link.TIMEOUT", 1.0)  # expires: a Redis that is paused never answers
    connection = redis_client.Redis.from_url(redis.url)
    server.set(delay=0.05)
    assert {"ok"} == statuses(score(kept(f"{fault} before")))

    def break_it() -> None:
        eventually(lambda: server.stats()["items"] > 700)
        if fault == "stopped":
            redis.kill()
        elif fault == "paused":
            redis.freeze()
        else:
            connection.config_set("maxmemory", "1mb")
            connection.config_set("maxmemory-policy", "noeviction")

    thread = threading.Thread(target=break_it)
    thread.start()
    for round in range(ROUNDS):
        assert {"ok"} == statuses(score(kept(f"{fault} {round}", 100)))
    thread.join()
    if fault == "paused":
        redis.thaw()
        again = redis_client.Redis.from_url(redis.url)  # accepted after all others
        assert again.info("stats")["total_connections_received"] < ROUNDS


def test_back_again(server: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch, run_script: Script) -> None:
    """A Redis that comes back is used again."""
    monkeypatch.setattr("rewardstack.cache.link.RETRY_AFTER", 0.2)
    score(kept("kept", 5))
    redis.kill()
    score(kept("meanwhile", 5))
    redis.start()
    connection = redis_client.Redis.from_url(redis.url)
    rounds = itertools.count()

    def written() -> bool:
        score(kept(f"again {next(rounds)}", 5))
        return bool(connection.dbsize())

    eventually(written)
