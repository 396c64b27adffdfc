"""The last hour over all replicas, in the Redis that they share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import redis as redis_client

from rewardstack_rules.status import recorder
from rewardstack_rules.status.figures import BOUNDS, MAX_ROUTES, gather, latencies, quantile, routes
from rewardstack_rules.status.figures import samples as samples_of_all
from rewardstack_rules.status.series import KEPT_MINUTES, MINUTES, Series
from rewardstack_rules.status.snapshot import SAMPLES, SECONDS, Snapshot, pack, unpack
from rewardstack_rules.status.snapshot_store import PREFIX, REPLICAS, SnapshotStore
from tests.rules.conftest import HERE, RewardServer
from tests.rules.test_status import told
from tests.support.servers import Redis
from tests.support.waiting import eventually

QUICK = HERE / "functions/quick_recorder.py"
RIGHT = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
Start = Callable[..., RewardServer]


def ok(count: float) -> Snapshot:
    """So many samples by one route."""
    return {(SAMPLES, "rule:gsm8k", "ok"): count}


def counts(series: Series, now: int) -> list[float]:
    """What each minute brought of them."""
    return [one.get((SAMPLES, "rule:gsm8k", "ok"), 0.0) for one in series.increases(now)]


def test_minutes() -> None:
    """A minute has what came since the snapshot before it, however long ago, and an earlier one none of its own."""
    series = Series(60 * 101)
    for minute, count in ((100, 5), (101, 7), (101, 9), (105, 10), (106, 10)):
        series.put(minute, ok(count))

    assert counts(series, 106)[-6:] == [4, 0, 0, 0, 1, 0]
    assert sum(counts(series, 106)) == 5
    series.put(106, ok(30))
    assert counts(series, 107)[-2:] == [20, 0]


def test_counts_after_a_restart() -> None:
    """A restarted server counts from 0: the minute's count is what it counted since."""
    series = Series(60 * 101)
    for minute, count in ((100, 50), (101, 60), (102, 3)):
        series.put(minute, ok(count))

    assert counts(series, 102)[-2:] == [10, 3]


def test_an_hour_is_kept() -> None:
    """Older snapshots go, but the one before the first minute that is told."""
    series = Series(0)
    for minute in range(1000):
        series.put(minute, ok(minute))

    assert counts(series, 999) == [1.0] * MINUTES
    assert sum(map(bool, series.increases(999 - MINUTES))) == KEPT_MINUTES - 1 - MINUTES


def test_replicas_add_up() -> None:
    """Routes are told over all replicas, minute by minute."""
    one, other = Series(60 * 100), Series(60 * 100)
    for series, more in ((one, 1), (other, 2)):
        series.put(99, ok(0))
        series.put(100, ok(more))
        series.put(101, ok(3 * more))

    [route] = routes(gather([one, other], [one, other], 101))

    assert route["hour"]["ok"] == route["total"]["ok"] == 9
    assert route["minutes"]["ok"][-2:] == [3, 6]


def test_more_routes_than_are_told() -> None:
    """Of many routes the busiest are told one by one, and all of them together."""
    series = Series(60 * 100)
    series.put(99, {})
    series.put(100, {(SAMPLES, f"r{at:03}", "ok"): float(at) for at in range(1, MAX_ROUTES + 11)})
    counted = gather([series], [series], 100)

    told, together = routes(counted), samples_of_all(counted)

    assert [one["route"] for one in told] == [f"r{at:03}" for at in range(MAX_ROUTES + 10, 10, -1)]
    assert together["hour"]["ok"] == together["total"]["ok"] == together["minutes"]["ok"][-1] == sum(range(111))


@pytest.mark.parametrize(
    ("buckets", "part", "value"),
    [
        ([(1, 0), (2, 10), (float("inf"), 10)], 0.5, 1.5),
        ([(1, 4), (2, 8), (float("inf"), 8)], 0.95, 1.9),
        ([(1, 0), (2, 0), (float("inf"), 3)], 0.5, 2),
        ([(1, 0), (float("inf"), 0)], 0.5, None),
        ([], 0.5, None),
    ],
)
def test_quantile(buckets: list[tuple[float, float]], part: float, value: float | None) -> None:
    """As Prometheus' histogram_quantile: within a bucket as if evenly spread, above the last bound that bound."""
    assert quantile(buckets, part) == (None if value is None else pytest.approx(value))


def test_latencies() -> None:
    """A bucket that did not grow still bounds the one above it from below."""
    counted: Snapshot = {(SECONDS, bound, "r"): 4.0 for bound in BOUNDS if bound == "+Inf" or float(bound) >= 1}

    assert latencies(counted, SECONDS, "r")["p50"] == pytest.approx(0.75)


def test_packed() -> None:
    """A snapshot comes back as it was."""
    snapshot = {**ok(3), (SECONDS, "0.5", "odd \x1f<b>"): 2.0}

    assert unpack(pack(7, snapshot).encode()) == (7, snapshot)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"{}",
        b"[1]",
        b"[1,[[2,3]]]",
        b'[1,[["os.system",1]]]',
        b'[1,[["%s","r","ok",NaN]]]' % SAMPLES.encode(),
        b'[1,[["%s","r",3]]]' % SAMPLES.encode(),
        b"[" * 5000,
        b"[1e999,[]]",
        b"[1.5,[]]",
        b"[true,[]]",
        *(b'[1,[["%s","r","ok",%s]]]' % (SAMPLES.encode(), value) for value in (b"1e308", b"-1", b"9" * 4000, b"true")),
        b'[1,[%s["%s","r","ok",1]]]' % (b'["%s","r","ok",1],' % SAMPLES.encode() * 30_000, SAMPLES.encode()),
    ],
    ids=lambda data: repr(data)[:30],
)
def test_what_is_not_believed(data: bytes | None) -> None:
    """What another wrote into Redis is read as nothing where it is no snapshot."""
    assert unpack(data) is None


@pytest.fixture
def replica(redis: Redis, start: Start) -> Start:
    """Starts a server that shares its counts at once."""
    settings = {"REWARD_CACHE_URL": redis.url, "REWARD_CACHE": "off", "REWARD_FUNCTIONS": QUICK}
    return lambda *arguments: start(*arguments, **settings)


@pytest.mark.nightly
def test_two_replicas(redis: Redis, replica: Start) -> None:
    """Each of two servers tells the samples of both; when one is killed its hour stays, and it is said to be down."""
    first = replica("--workers", "2")
    second = replica("--workers", "2")
    first.score(*[RIGHT] * 3)
    second.score(*[RIGHT] * 4)

    eventually(lambda: samples(told(first)) == samples(told(second)) == 7)
    scope = told(first)["scope"]
    assert scope["shared"] and not scope["note"] and len(scope["replicas"]) == 2
    master = psutil.Process(second.process.pid)
    for process in [*master.children(recursive=True), master]:
        process.kill()
    link: Any = redis_client.Redis.from_url(redis.url)
    [gone] = [life for life in link.zrange(REPLICAS, 0, -1) if scope["replicas"][1]["name"].encode() in life]
    link.zadd(REPLICAS, {gone: time.time() - recorder.SILENCE})
    eventually(lambda: [one["up"] for one in told(first)["scope"]["replicas"]] == [True, False])
    assert samples(told(first)) == 7


@pytest.mark.nightly
def test_one_that_ends_in_order_is_not_missed(replica: Start) -> None:
    """A server that was stopped, of one process or of several, counts for the hour, and is neither up nor down."""
    first, one, several = replica(), replica(), replica("--workers", "2")
    one.score(*[RIGHT] * 4)
    several.score(*[RIGHT] * 3)
    eventually(lambda: samples(told(first)) == 7)
    assert len(told(first)["scope"]["replicas"]) == 3

    for left, stopped in ((2, one), (1, several)):
        stopped.stop()

        reply = told(first)
        assert [one["asked"] for one in reply["scope"]["replicas"]] == [True] + [False] * (left - 1)
        assert [one["up"] for one in reply["services"] if one["service"] == "reward server"] == [True] * left
        assert samples(reply) == 7


def test_a_restart_keeps_the_hour(redis: Redis, replica: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that restarts at the same address keeps its last hour."""
    server = replica()
    server.score(*[RIGHT] * 5)
    ring = redis_client.Redis.from_url(redis.url)
    eventually(lambda: any(b"samples" in one for key in ring.keys(f"{PREFIX}:of:*") for one in ring.hvals(key)))
    server.process.terminate()
    server.process.wait()

    monkeypatch.setattr("tests.rules.conftest.free_port", lambda: int(server.url.rpartition(":")[2]))
    again = replica()

    eventually(lambda: samples(told(again)) == 5)
    again.score(RIGHT)
    eventually(lambda: samples(told(again)) == 6)
    assert [one["up"] for one in told(again)["scope"]["replicas"]] == [True]


@pytest.mark.nightly
def test_redis_away(redis: Redis, replica: Start) -> None:
    """Without the Redis that was there the server tells its own figures and the others' last ones, and says so."""
    server, other = replica(), replica()
    other.score(*[RIGHT] * 4)
    eventually(lambda: samples(told(server)) == 4)
    redis.kill()
    server.score(RIGHT)

    reply = told(server)

    assert "does not answer" in reply["scope"]["note"] and "other servers' figures are old" in reply["scope"]["note"]
    assert [one["up"] for one in reply["services"] if one["service"] == "cache"] == [False]
    assert [one["up"] for one in reply["scope"]["replicas"]] == [True, True]
    assert samples(reply) == 5


def test_planted_numbers(redis: Redis, replica: Start) -> None:
    """Numbers that no replica writes are ignored, and the server reports its own samples."""
    server = replica()
    server.score(RIGHT)
    link: Any = redis_client.Redis.from_url(redis.url)
    name, minute = f"planted 127.0.0.1:1 {time.time() - 600:.3f}", int(time.time() // 60)
    fields = itertools.count()
    for value in (b"1e308", b"9" * 4000, b"-1e300"):
        row = b'["%s","planted","ok",%s]' % (SAMPLES.encode(), value)
        link.hset(f"{PREFIX}:of:{name}", str((minute - next(fields)) % KEPT_MINUTES), b"[%d,[%s]]" % (minute, row))
    link.hset(f"{PREFIX}:of:{name}", str((minute + 1) % KEPT_MINUTES), b"[1e999,[]]")
    silent = {f"silent 127.0.0.1:{number} {time.time():.3f}": end for number, end in ((2, "-inf"), (3, "+inf"))}
    link.zadd(REPLICAS, {name: time.time(), **silent})

    assert samples(told(server)) == 1
    text = server.get("/v1/status").text
    assert "planted 127.0.0.1:1" in text and "Infinity" not in text


def test_what_is_written(redis: Redis) -> None:
    """A replica has one key, with a field a minute of the last hour, and an end; names are read as they are."""
    ring, series = SnapshotStore(redis.url, "a <b>"), Series(0)
    for minute in range(1000, 1000 + 3 * KEPT_MINUTES):
        ring.write(minute, ok(minute))
    link = redis_client.Redis.from_url(redis.url)

    assert link.hlen(f"{PREFIX}:of:a <b>") == KEPT_MINUTES
    assert 0 < link.ttl(f"{PREFIX}:of:a <b>") <= 7200 and 0 < link.ttl(REPLICAS) <= 7200
    assert list(ring.replicas()) == ["a <b>"]
    for minute, snapshot in ring.read({"a <b>": 0}, 999 + 3 * KEPT_MINUTES)["a <b>"].snapshots:
        series.put(minute, snapshot)
    assert counts(series, 999 + 3 * KEPT_MINUTES) == [1.0] * MINUTES


def samples(reply: dict[str, Any]) -> int:
    """How many were scored in the hour."""
    return sum(sum(one["hour"].values()) for one in reply["routes"])
