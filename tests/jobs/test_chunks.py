"""A chunk, step by step, on a real queue: who has it, which result counts, when it is sent again."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from rewardstack.core.wire import score_record
from rewardstack.errors import OverloadError
from rewardstack.score import Request, Score
from rewardstack_rules.jobs import lease as leases
from rewardstack_rules.jobs.chunk import MAX_DEATHS
from rewardstack_rules.jobs.delivery import Delivery, FairQueue
from rewardstack_rules.jobs.ledger import Chunk, Ledger
from rewardstack_rules.jobs.store import Conflict, JobStore
from rewardstack_rules.jobs.submission import CHUNK_CHARACTERS
from rewardstack_rules.jobs.sweeper import Sweeper
from rewardstack_rules.settings import Settings
from tests.jobs.conftest import Queue
from tests.jobs.steps import LEASE, SIZE, begin, lapse, replies, requests_of, results
from tests.support.waiting import eventually


def test_the_first_commit_counts(store: JobStore, ledger: Ledger) -> None:
    """Of two results of one chunk the first is the result, and counts once."""
    job_id = store.submit(requests_of("a", "b", "c", "d", "e"), "")
    late = begin(ledger, job_id)
    lapse(store, late)
    quick = begin(ledger, job_id)

    assert ["committed", "duplicate"] == [ledger.commit(quick, replies(0.25)), ledger.commit(late, replies(0.75))]

    state = store.state("", job_id)
    assert state is not None and (state.done, state.statuses["ok"]) == (SIZE, SIZE)
    assert [0.25] * SIZE == [one["value"] for one in results(store, job_id)]


def test_a_chunk_has_one_worker(store: JobStore, ledger: Ledger) -> None:
    """While a worker has a chunk no other gets it; who lost it cannot keep it, or give it away."""
    job_id = store.submit(requests_of("a"), "")
    late = begin(ledger, job_id)
    assert ledger.begin(job_id, 0) is None
    assert ledger.renew(late)
    lapse(store, late)
    quick = begin(ledger, job_id)

    ledger.postpone(late, 0, {})
    ledger.release(late)

    assert (False, True) == (ledger.renew(late), ledger.renew(quick))
    assert ledger.begin(job_id, 0) is None


def test_a_long_chunk_stays_its_workers(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a worker works on it, a chunk is not sent to another, however long that takes; afterwards it is."""
    monkeypatch.setattr(leases, "LEASE", 0.3)  # expires: the time between renewals; each gives that of the ledger
    job_id = store.submit(requests_of("a"), "")
    sweeper, delivery = Sweeper(store.redis, "test"), Delivery(store.redis)
    delivery.queues[0].empty()
    chunk = begin(ledger, job_id)
    first = seconds_left(store, chunk)

    with leases.Lease(ledger, chunk):
        for _ in range(3):
            lapse_nearly(store, chunk)
            eventually(lambda: seconds_left(store, chunk) > first / 2)
            assert (0, None) == (sweeper.sweep(), ledger.begin(job_id, 0))
    eventually(lambda: "lease" not in {thread.name for thread in threading.enumerate()})
    assert 0 < seconds_left(store, chunk) <= LEASE
    lapse(store, chunk)
    assert 1 == sweeper.sweep()


def seconds_left(store: JobStore, chunk: Chunk) -> float:
    """Seconds until the lease of a chunk ends."""
    seconds, microseconds = store.redis.time()
    return float(store.redis.zscore(chunk.keys["due"], str(chunk.number)) - seconds - microseconds / 1e6)


def lapse_nearly(store: JobStore, chunk: Chunk) -> None:
    """Time goes by: the lease of a chunk is nearly over."""
    soon = store.redis.time()[0] + LEASE / 4
    store.redis.hset(chunk.keys["tries"], f"{chunk.number}:until", soon)
    store.redis.zadd(chunk.keys["due"], {str(chunk.number): soon}, xx=True)


def test_a_chunk_that_has_a_result_is_done(store: JobStore, ledger: Ledger) -> None:
    """It is not begun again, nor is one of a job that is unknown or has ended."""
    job_id = store.submit(requests_of("a", "b", "c", "d", "e"), "")
    ledger.commit(begin(ledger, job_id), replies(1.0))
    canceled = store.submit(requests_of("a"), "")
    chunk = begin(ledger, canceled)
    store.cancel("", canceled)

    assert [None] * 4 == [ledger.begin(*one) for one in [(job_id, 0), (job_id, 7), (canceled, 0), ("0" * 32, 0)]]
    assert ("dropped", False) == (ledger.commit(chunk, replies(1.0)), ledger.renew(chunk))
    assert [] == results(store, canceled)


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        (["extra_info.a"] * 6, "failed", "extra_info.a: no 0"),
        (["extra_info.a"] * 5 + ["extra_info.b"], "finished", ""),
        (["extra_info.a"] * 4 + [""] * 2, "finished", ""),
        ([""] + ["extra_info.a"] * 5, "finished", ""),
        (["solution_str"] * 6, "finished", ""),
        (["extra_info.a"], "finished", ""),
    ],
)
def test_an_option_that_is_wrong(store: JobStore, ledger: Ledger, fields: list[str], status: str, error: str) -> None:
    """A job of several samples ends as failed, with the reason, where one option is wrong in all of all its chunks."""
    job_id = store.submit(requests_of(*map(str, range(len(fields)))), "")
    said = [score_record(Score.unscored(f"{field}: no {at}", field=field)) for at, field in enumerate(fields)]
    for number, start in enumerate(range(0, len(said), SIZE)):
        ledger.commit(begin(ledger, job_id, number), said[start : start + SIZE])

    state = store.state("", job_id)
    assert state is not None and (state.status, state.error) == (status, error)
    assert len(fields) == state.done == len(results(store, job_id))


def test_handing_back_is_no_death(store: JobStore, ledger: Ledger) -> None:
    """A chunk that a worker hands back is as if it had not been begun."""
    job_id = store.submit(requests_of("a"), "")
    for _ in range(MAX_DEATHS + 1):
        ledger.release(begin(ledger, job_id))

    assert 0 == begin(ledger, job_id).deaths


def test_sweeping(store: JobStore, ledger: Ledger) -> None:
    """Sent again is what is overdue, and neither waiting in the queue nor with a worker."""
    job_id = store.submit(requests_of(*map(str, range(3 * SIZE))), "")
    sweeper, delivery = Sweeper(store.redis, "test"), Delivery(store.redis)
    assert 0 == sweeper.sweep()
    store.redis.zadd(f"rewardstack:jobs::job:{job_id}:due", {"0": 0, "1": 0, "2": 0})
    assert 0 == sweeper.sweep()
    delivery.queues[0].empty()
    begin(ledger, job_id, 1)

    assert [2, 0] == [sweeper.sweep(), sweeper.sweep()]
    assert {(job_id, 0), (job_id, 2)} == delivery.waiting()


def test_chunks_are_bounded(store: JobStore, ledger: Ledger) -> None:
    """A chunk ends after so many samples, or so many characters; starts and lines fit."""
    long = "x" * (CHUNK_CHARACTERS // 2)
    texts = ["a", "b", "c", "d", "e", long, long, long * 3, "f"]
    job_id = store.submit(requests_of(*texts), "")

    sizes = []
    for number in range(6):
        if (chunk := ledger.begin(job_id, number)) is not None:
            sizes.append(len(chunk.samples))
            ledger.commit(chunk, [score_record(Score(float(len(one.solution_str)))) for one in chunk.pending.values()])

    assert ([4, 2, 1, 1, 1], "finished") == (sizes, getattr(store.state("", job_id), "status", ""))
    assert list(map(len, texts)) == [one["value"] for one in results(store, job_id)]
    assert [7] == [json.loads(line)["index"] for line in store.results("", job_id, 7, 1)]


def test_idempotency_survives_the_way_samples_are_written(store: JobStore) -> None:
    """The order of an object's keys makes no other samples; a conflict leaves nothing behind."""
    first = store.submit([Request("gsm8k", "a", None, {"x": 1, "y": 2})], "", "key")
    again = store.submit([Request("gsm8k", "a", None, {"y": 2, "x": 1})], "", "key")
    with pytest.raises(Conflict):
        store.submit(requests_of("b"), "", "key")

    assert first == again
    assert 1 == len(list(store.redis.scan_iter("rewardstack:jobs:*:input")))


def test_an_earlier_job_that_ends_meanwhile(store: JobStore) -> None:
    """If the earlier job with the same key is removed during the upload, the submission fails; no empty job is left."""
    first = store.submit(requests_of("a"), "", "key")

    def arriving() -> Iterator[Request]:
        store.cancel("", first)
        yield from requests_of("a")

    with pytest.raises(OverloadError, match="expired during the upload"):
        store.submit(arriving(), "", "key")
    again = store.submit(requests_of("a"), "", "key")
    state = store.state("", again)
    assert state is not None and (state.status, state.items) == ("queued", 1)


def test_groups_are_not_divided(queue: Queue, ledger: Ledger) -> None:
    """The members of a group are in one chunk."""
    settings = Settings.from_env({"REWARD_QUEUE_URL": queue.url, "REWARD_JOB_CHUNK_SIZE": "4"})
    store = JobStore(settings, lambda request: request.data_source)
    job = store.submit([Request(source, "1", "1") for source in "aaabbbc"], "tenant")
    chunks = [ledger.begin(job, number) for number in range(2)]
    assert ["aaa", "bbbc"] == [
        "".join(one.data_source for one in chunk.samples if isinstance(one, Request)) for chunk in chunks if chunk
    ]


def take(store: JobStore) -> tuple[str, int]:
    """What the next worker gets: the job and the number of a chunk."""
    [queue, _] = Delivery(store.redis).queues
    _, entry = FairQueue.lpop([queue.key], None, store.redis)
    job_id, number, _ = entry.decode().split("-")
    return job_id, int(number)


def test_tenants_take_turns(store: JobStore) -> None:
    """The next chunk is one of the tenant that had its turn the longest time ago; a tenant's own are in order."""
    texts = [str(at) for at in range(3 * SIZE)]
    first, second = (store.submit(requests_of(*texts), "a") for _ in range(2))
    assert [take(store), take(store)] == [(first, 0), (first, 1)]
    other = store.submit(requests_of(*texts[: 2 * SIZE]), "b")
    third = store.submit(requests_of("x"), "c")
    assert Delivery(store.redis).others_wait("a") and Delivery(store.redis).others_wait("b")
    order = [take(store) for _ in range(7)]
    assert order == [(other, 0), (third, 0), (first, 2), (other, 1), (second, 0), (second, 1), (second, 2)]
    store.submit(requests_of("x"), "a")
    assert not Delivery(store.redis).others_wait("a")
