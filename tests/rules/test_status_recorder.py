"""What a recorder keeps of other servers and of its own hour, with a Redis that comes and goes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

from rewardstack_rules.metrics.directory import START_FILE, clear_counts
from rewardstack_rules.status import recorder, report, snapshot_store
from rewardstack_rules.status.recorder import Recorder
from rewardstack_rules.status.report import HealthChecks
from rewardstack_rules.status.snapshot import SAMPLES, Snapshot
from rewardstack_rules.status.snapshot_store import SnapshotStore
from tests.support.servers import Redis
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def wait_for_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a Redis that a busy machine slows down."""
    monkeypatch.setattr(snapshot_store, "WAIT", 60.0)


def ok(count: float) -> Snapshot:
    """So many samples by one route."""
    return {(SAMPLES, "rule:gsm8k", "ok"): count}


def others(redis: Redis, count: int) -> None:
    """So many other servers have written what they counted."""
    minute = int(time.time() // 60)
    for at in range(count):
        SnapshotStore(redis.url, f"host 10.0.0.{at}:6000 {60 * minute}.0").write(minute, ok(5))


def test_redis_away(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the Redis is away the others' hour stays, and whether they live is not known when it would have shown."""
    monkeypatch.setattr(recorder, "SILENCE", 3600.0)
    others(redis, 2)
    one = Recorder("here:6000", "", redis.url)
    assert [each.is_up for each in one.replicas()] == [True] * 3

    redis.kill()

    assert [each.is_up for each in one.replicas()] == [True] * 3 and one.redis_error
    assert [each.series.latest for each in one.replicas()[1:]] == [ok(5)] * 2
    monkeypatch.setattr(recorder, "SILENCE", 0.0)
    assert [each.is_up for each in one.replicas()[1:]] == [None] * 2


def test_an_own_hour_is_taken_up_when_redis_comes(
    redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that starts while the Redis is away takes up what its server wrote as soon as it can."""
    monkeypatch.setattr(recorder, "INTERVAL", 0.05)
    clear_counts(tmp_path)
    minute = int(time.time() // 60) - 2
    os.utime(tmp_path / START_FILE, (60 * minute, 60 * minute))
    one = Recorder("here:6000", str(tmp_path), redis.url)
    SnapshotStore(redis.url, one.replicas()[0].id).write(minute, ok(7))
    failing, read = [3, 2, 1], SnapshotStore.read

    def away_at_first(*arguments: Any) -> Any:
        if failing:
            failing.pop()
            raise redis_client.ConnectionError
        return read(*arguments)

    monkeypatch.setattr(SnapshotStore, "read", away_at_first)
    one.start()

    eventually(lambda: ok(7) in one.replicas()[0].series.increases(minute + 2))


def test_redis_away_is_logged_once(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each time that the Redis goes away, one line names its setting."""
    caplog.set_level("INFO", recorder.__name__)
    monkeypatch.setattr(recorder, "INTERVAL", 0.01)
    one, written = Recorder("here:6000", "", redis.url), list[int]()
    write, others_threads = SnapshotStore.write, {thread.ident for thread in threading.enumerate()}

    def count(*arguments: Any) -> None:
        written.append(0)
        write(*arguments)
        written.append(1)

    monkeypatch.setattr(SnapshotStore, "write", count)
    redis.kill()
    one.start()
    for _ in range(2):
        eventually(lambda: written.count(0) > 3)
        redis.start()
        eventually(lambda: 1 in written)
        [message] = [record.getMessage() for record in caplog.records if record.thread not in others_threads]
        assert message.startswith("cannot store the status page's last hour in the Redis of REWARD_CACHE_URL: ")
        assert not message.endswith(".")
        caplog.clear()
        written.clear()
        redis.kill()


def test_many_servers_are_read_in_two_queries(redis: Redis) -> None:
    """A report queries Redis twice, however many servers there are."""
    others(redis, 30)
    one = Recorder("here:6000", "", redis.url)
    link: Any = redis_client.Redis.from_url(redis.url)
    one.replicas()

    before = link.info("stats")["total_reads_processed"]
    assert len(one.replicas()) == 31
    assert link.info("stats")["total_reads_processed"] - before <= 2 + 1  # this question itself


def test_what_cannot_be_asked_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where asking how services stand fails, only the first report waits for it."""
    asking: list[int] = []
    monkeypatch.setattr(report, "FIRST_CHECK_SECONDS", 3600.0)

    def fail() -> list[Any]:
        asking.append(1)
        raise RuntimeError("no")

    asked = HealthChecks(fail)
    assert asked.latest() == asked.latest() == [] and asking == [1]
