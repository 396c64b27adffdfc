"""A queue whose memory is spent: it takes no more, and ends what it has taken."""

from __future__ import annotations

import pytest
import redis
import requests

from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.store import JobStore
from tests.jobs.conftest import Site, sample
from tests.jobs.steps import begin, replies, requests_of, results

ROOM = 4 * 2**20
"""Bytes that the queue has beside what it needs when it is empty."""
MANY = 500
"""Samples in a job."""


@pytest.mark.nightly
def test_what_was_taken_is_finished(own: Site) -> None:
    """Jobs are refused long before the memory is spent, with the remedy; each that was taken is scored to its end."""
    link = redis.Redis.from_url(own.queue.url)
    link.config_set("maxmemory", link.info("memory")["used_memory"] + ROOM)
    taken: list[str] = []
    refused: requests.Response | None = None
    while refused is None and len(taken) < 1000:
        reply = own.server.post("/jobs", {"items": [sample(at) for at in range(MANY)]})
        if reply.status_code == 202:
            taken.append(reply.json()["job_id"])
        else:
            refused = reply
    assert refused is not None and refused.status_code == 503
    assert "Retry-After" in refused.headers and "raise QUEUE_MAX_MEMORY" in refused.json()["error"]
    assert len(taken) > 1

    own.add_worker(REWARD_FUNCTIONS="")

    for job_id in taken:
        assert own.end_of(job_id, 240)["statuses"]["ok"] == MANY


@pytest.mark.nightly
def test_spent_memory_does_not_keep_a_job(own: Site) -> None:
    """Where no byte is left a job can be canceled, which frees its samples."""
    job_id = own.submit(*(sample(at) for at in range(MANY)))
    link = redis.Redis.from_url(own.queue.url)
    link.config_set("maxmemory", 1)

    reply = requests.delete(f"{own.server.url}/jobs/{job_id}", timeout=60)

    assert (reply.status_code, own.state(job_id)["status"]) == (200, "canceled")
    assert not link.exists(f"rewardstack:jobs::job:{job_id}:input")


@pytest.fixture
def spent(store: JobStore) -> str:
    """A job of two chunks in a queue without a byte left."""
    job_id = store.submit(requests_of(*"abcdefgh"), "")
    store.redis.config_set("maxmemory", 1)
    return job_id


def test_spent_memory_does_not_keep_a_chunk(spent: str, store: JobStore, ledger: Ledger) -> None:
    """Where no byte is left chunks are begun, kept, postponed and committed, until the job has ended."""
    first, second = begin(ledger, spent), begin(ledger, spent, 1)
    assert ledger.renew(first)
    ledger.postpone(first, 0, {})
    first = begin(ledger, spent)

    assert ["committed"] * 2 == [ledger.commit(chunk, replies(1.0)) for chunk in (first, second)]

    assert [1.0] * 8 == [one["value"] for one in results(store, spent)]
    assert getattr(store.state("", spent), "status", "") == "finished"
