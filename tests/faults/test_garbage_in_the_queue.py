"""A queue that holds what rewardstack did not write: no answer is a 500, and none of it reaches a reader."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rewardstack_rules.jobs.delivery import QUEUE
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.store import JobStore
from rewardstack_rules.jobs.sweeper import Sweeper
from tests.jobs.conftest import CHUNK_SIZE, Site, sample, site
from tests.jobs.steps import SIZE, begin, lapse, requests_of, results
from tests.jobs.test_attempts import Judge, run

GARBAGE = b"\xff\x00 rubbish"
LINES = {
    "no bytes of ours": GARBAGE,
    "no lines": zlib.compress(GARBAGE),
    "other lines": zlib.compress(b'"rubbish"\n[]\n{}\n{"index": 3}\n{"index": 4, "status": "rubbish"}'),
    "lines of another chunk": zlib.compress(
        b'{"index": 99, "status": "ok", "cached": false, "value": 1}\n' * CHUNK_SIZE
    ),
    "too few": zlib.compress(b""),
    "too deep": zlib.compress(b"[" * 100_000),
}
META: dict[str, Any] = {
    "items": "rubbish",
    "state": GARBAGE,
    "submitted": "nan",
    "started": "1e300",
    "ended": GARBAGE,
    "ttl": "9" * 5000,
    "ok": "1.5",
    "starts": "{}",
}
"""Fields of a job, and what cannot stand there."""


@pytest.fixture(scope="module")
def here(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server and a queue without workers: what is wrong there stays wrong."""
    with site(tmp_path_factory.mktemp("garbage")) as one:
        yield one


@pytest.mark.parametrize("lines", LINES)
def test_results(here: Site, lines: str) -> None:
    """A result that cannot be read is that of samples that failed: a line for each, with nothing of what was found."""
    job_id = here.submit(*(sample(at) for at in range(CHUNK_SIZE)))
    redis.Redis.from_url(here.queue.url).hset(f"rewardstack:jobs::job:{job_id}:results", "0", LINES[lines])

    reply = here.server.get(f"/jobs/{job_id}/results?partial=1")

    found = [json.loads(line) for line in reply.content.splitlines()]
    assert [(one["index"], one["status"], one["value"]) for one in found] == [
        (at, "failed", None) for at in range(CHUNK_SIZE)
    ]
    assert b"rubbish" not in reply.content


@pytest.mark.parametrize("field", META)
def test_a_job(here: Site, field: str) -> None:
    """A job that cannot be read is 503 with what is wrong, and is that alone: others are taken and told of."""
    job_id = here.submit(sample(0))
    redis.Redis.from_url(here.queue.url).hset(f"rewardstack:jobs::job:{job_id}:meta", field, META[field])

    for path in ("", "/results?partial=1"):
        reply = here.server.get(f"/jobs/{job_id}{path}")
        assert reply.status_code in (200, 503)
        assert "rubbish" not in reply.text
        assert reply.status_code == 200 or "rewardstack did not write" in reply.json()["error"]
    assert here.state(here.submit(sample(0)))["status"] == "queued"


@pytest.mark.parametrize("found", [GARBAGE, b"rubbish:rubbish", b""])
def test_an_idempotency_key(here: Site, found: bytes) -> None:
    """A key under which something else stands is no job's id."""
    link = redis.Redis.from_url(here.queue.url)
    here.submit(sample(0), headers={"Idempotency-Key": "one"})
    [place] = link.scan_iter("rewardstack:jobs::key:*")
    link.set(place, found)

    reply = here.server.post("/jobs", {"items": [sample(0)]}, headers={"Idempotency-Key": "one"})

    link.delete(place)
    assert (reply.status_code, "rubbish" in reply.text) == (503, False)


def test_counts(here: Site) -> None:
    """Counts that are none are left out, and the server's own are told."""
    link = redis.Redis.from_url(here.queue.url)
    link.hset("rewardstack:jobs:counts", "jobs_submitted", GARBAGE)
    reply = here.server.get("/metrics")
    link.hdel("rewardstack:jobs:counts", "jobs_submitted")

    assert (reply.status_code, "rewardstack_queue_up 0.0" in reply.text) == (200, True)


@pytest.mark.parametrize("lines", LINES)
def test_samples(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Samples that cannot be read are failed at once, and their job ends."""
    job_id = store.submit(requests_of(*map(str, range(SIZE))), "")
    store.redis.hset(f"rewardstack:jobs::job:{job_id}:input", "0", LINES[lines])
    run(monkeypatch, ledger, Judge(), job_id)

    assert {"failed"} >= {one["status"] for one in results(store, job_id)}
    assert getattr(store.state("", job_id), "status", "") == "failed"


@pytest.mark.parametrize("lines", LINES)
def test_earlier_attempts(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Unreadable results of an earlier attempt are computed again."""
    job_id = store.submit(requests_of(*map(str, range(SIZE))), "")
    lapse(store, begin(ledger, job_id))
    store.redis.hset(f"rewardstack:jobs::job:{job_id}:partial", "0", LINES[lines])
    run(monkeypatch, ledger, Judge(), job_id)

    assert ["ok"] * SIZE == [one["status"] for one in results(store, job_id)]


def test_sweeping(store: JobStore) -> None:
    """What is no chunk and no job does not keep lost chunks of others from being sent again."""
    broken, job_id = store.submit(requests_of("a"), ""), store.submit(requests_of("a"), "")
    store.redis.zadd(f"rewardstack:jobs::job:{broken}:due", {"rubbish": 0, GARBAGE: 0})
    store.redis.hset("rewardstack:jobs:open", GARBAGE, GARBAGE)
    store.redis.delete(f"rq:queue:{QUEUE}")
    store.redis.rpush(f"rq:queue:{QUEUE}", GARBAGE, "rubbish-rubbish-rubbish")
    store.redis.zadd(f"rewardstack:jobs::job:{job_id}:due", {"0": 0})

    assert 1 == Sweeper(store.redis, "test").sweep()
