"""A client that wants more than its share: its key is refused, others are not; what it gives back is free again."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
import requests

from rewardstack.score import Request
from rewardstack_rules.jobs import submission
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.limits import LimitReached
from rewardstack_rules.jobs.store import Conflict, JobStore
from rewardstack_rules.settings import Settings
from tests.cli.conftest import Cli
from tests.cli.samples import write_jsonl
from tests.jobs.conftest import KEY, KEYS, OTHER_KEY, Site, sample, site
from tests.jobs.steps import SIZE, begin, replies, requests_of
from tests.support.jobs import Queue
from tests.support.waiting import eventually

MOST_JOBS = 2
MOST_BYTES = 40_000
TENANT = "somebody"
Reopen = Callable[..., JobStore]


@pytest.fixture(scope="module")
def limited(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site without workers, with two keys and limits on what they have in the queue."""
    variables: dict[str, Any] = {"REWARD_SERVER_API_KEYS": KEYS, "REWARD_KEY_OPEN_JOBS": MOST_JOBS}
    with site(tmp_path_factory.mktemp("limited"), REWARD_KEY_QUEUE_BYTES=MOST_BYTES, **variables) as here:
        yield here


@pytest.fixture
def empty(limited: Site) -> Site:
    """It has no job."""
    redis.Redis.from_url(limited.queue.url).flushall()
    return limited


@pytest.fixture
def reopen(queue: Queue) -> Reopen:
    """Opens an empty queue as servers with these limits do."""
    redis.Redis.from_url(queue.url).flushall()

    def make(**variables: Any) -> JobStore:
        given = {"REWARD_QUEUE_URL": queue.url, "REWARD_JOB_CHUNK_SIZE": SIZE, **variables}
        return JobStore(Settings.from_env({name: str(value) for name, value in given.items()}))

    return make


@pytest.mark.nightly
def test_submit_waits_for_its_turn(empty: Site, tmp_path: Path) -> None:
    """`rewardstack submit` says which limit it waits for, and submits once another job of its key has ended."""
    before, _ = (empty.submit(sample(0), headers=KEY) for _ in range(MOST_JOBS))
    write_jsonl(tmp_path / "in.jsonl", [sample(0), sample(1)])
    variables = {"REWARD_SERVER_URL": empty.server.url, "REWARD_SERVER_API_KEY": KEY["X-API-Key"]}
    process = Cli(tmp_path, variables).start("submit", "in.jsonl")
    try:
        assert process.stderr is not None
        assert "429: REWARD_KEY_OPEN_JOBS" in process.stderr.readline()
        requests.delete(f"{empty.server.url}/jobs/{before}", headers=KEY, timeout=60)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()

    assert (process.returncode, empty.state(printed.strip(), headers=KEY)["items"]) == (0, 2)


def noise(size: int) -> str:
    """Text that takes about as many bytes in the queue as it has characters."""
    return random.Random(size).randbytes(size).hex()


def account(store: JobStore) -> int:
    """The bytes that the tenant is charged with."""
    return int(store.redis.hget(f"rewardstack:jobs:{TENANT}:bytes", "all") or 0)


def present(store: JobStore) -> int:
    """The bytes that its samples and results have."""
    mine = f"rewardstack:jobs:{TENANT}:job:*"
    found = [key for part in ("input", "results") for key in store.redis.scan_iter(f"{mine}:{part}")]
    return sum(len(data) for key in found for data in store.redis.hvals(key))


def test_open_jobs(empty: Site) -> None:
    """A key that has as many open jobs as it may is told so, and when to come back; another key is not concerned."""
    first, second = (empty.submit(sample(0), headers=KEY | {"Idempotency-Key": name}) for name in ("one", "two"))

    refused = empty.server.post("/jobs", {"items": [sample(0)]}, headers=KEY)

    assert (429, "REWARD_KEY_OPEN_JOBS") == (refused.status_code, refused.json()["field"]), refused.text
    assert int(refused.headers["Retry-After"]) > 0 and "cancel one" in refused.json()["error"]
    assert empty.submit(sample(0), headers=OTHER_KEY)
    assert empty.submit(sample(0), headers=KEY | {"Idempotency-Key": "one"}) == first

    assert requests.delete(f"{empty.server.url}/jobs/{second}", headers=KEY, timeout=60).status_code == 200
    assert empty.submit(sample(0), headers=KEY)


def test_queue_bytes(empty: Site) -> None:
    """A key whose samples fill its part of the queue is told so; another key is not concerned."""
    large = [{**sample(0), "solution_str": noise(MOST_BYTES // 3 + at)} for at in range(2)]
    job_id = empty.submit(large[0], headers=KEY)

    refused = empty.server.post("/jobs", {"items": large}, headers=KEY)

    assert (429, "REWARD_KEY_QUEUE_BYTES") == (refused.status_code, refused.json()["field"]), refused.text
    assert int(refused.headers["Retry-After"]) > 0 and "cancel jobs" in refused.json()["error"]
    assert empty.submit(large[0], headers=OTHER_KEY)

    assert requests.delete(f"{empty.server.url}/jobs/{job_id}", headers=KEY, timeout=60).status_code == 200
    assert empty.submit(*large, headers=KEY)


def test_a_job_that_is_sent_again(reopen: Reopen) -> None:
    """A job that alone fills most of its key's part of the queue is recognised when it is sent again."""
    store = reopen(REWARD_KEY_QUEUE_BYTES=MOST_BYTES)
    first, again = (store.submit(requests_of(noise(MOST_BYTES * 3 // 5)), TENANT, "k") for _ in range(2))

    assert (first, present(store)) == (again, account(store))
    with pytest.raises(Conflict):
        store.submit(requests_of(noise(MOST_BYTES * 3 // 5 + 1)), TENANT, "k")


def test_a_job_that_never_fits(empty: Site) -> None:
    """A job that alone is more than its key may have is refused for good, and leaves nothing behind."""
    refused = empty.server.post("/jobs", {"items": [{**sample(0), "solution_str": noise(MOST_BYTES)}]}, headers=KEY)

    assert (413, "REWARD_KEY_QUEUE_BYTES") == (refused.status_code, refused.json()["field"]), refused.text
    assert "Retry-After" not in refused.headers and "several jobs" in refused.json()["error"]
    assert not list(redis.Redis.from_url(empty.queue.url).scan_iter("rewardstack:jobs:*:*"))


@pytest.mark.parametrize(("limit", "most"), [("REWARD_KEY_OPEN_JOBS", 3), ("REWARD_KEY_QUEUE_BYTES", 3 * MOST_BYTES)])
def test_concurrent_submissions_at_two_servers(reopen: Reopen, limit: str, most: int) -> None:
    """Submissions that end at the same moment at two servers never take more than the key's limit."""
    concurrent = 8
    stores, ready = [reopen(**{limit: most}) for _ in range(2)], threading.Barrier(concurrent)

    def last_moment(text: str) -> Iterator[Request]:
        ready.wait(60)
        yield from requests_of(text)

    def submit(number: int) -> bool:
        try:
            return bool(stores[number % 2].submit(last_moment(noise(MOST_BYTES * 4 // 5)), TENANT))
        except LimitReached:
            return False

    with ThreadPoolExecutor(concurrent) as threads:
        taken = sum(threads.map(submit, range(concurrent)))

    assert (taken, stores[0].redis.hlen("rewardstack:jobs:open")) == (3, 3)
    assert present(stores[0]) <= 3 * MOST_BYTES


def test_a_lost_answer(reopen: Reopen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is announced once more, since the answer was lost, does not stand in its own way."""
    store = reopen(REWARD_KEY_OPEN_JOBS=1)
    publish = store._publish

    def twice(*arguments: Any) -> Any:
        publish(*arguments)
        return publish(*arguments)

    monkeypatch.setattr(store, "_publish", twice)

    job_id = store.submit(requests_of("a"), TENANT)

    assert store.redis.hlen(f"rewardstack:jobs:{TENANT}:job:{job_id}:input") == 1


def test_the_account_is_right(reopen: Reopen) -> None:
    """A key is charged with what its samples and results take, at each step of its jobs."""
    store = reopen(REWARD_KEY_QUEUE_BYTES=MOST_BYTES)
    ledger = Ledger(store.redis)
    charged = []
    for wanted in ("scored", "canceled"):
        job_id = store.submit(requests_of(*map(noise, range(SIZE * 2))), TENANT, wanted)
        charged.append((account(store), present(store)))
        assert job_id == store.submit(requests_of(*map(noise, range(SIZE * 2))), TENANT, wanted)
        charged.append((account(store), present(store)))
        chunks = [begin(ledger, job_id, number) for number in range(2)]
        for chunk in chunks if wanted == "scored" else chunks[:1]:
            assert ledger.commit(chunk, replies(1.0)) == "committed"
            assert ledger.commit(chunk, replies(1.0)) in ("duplicate", "dropped")
            charged.append((account(store), present(store)))
        store.cancel(TENANT, job_id)
        charged.append((account(store), present(store)))

    assert [has for _, has in charged] == [told for told, _ in charged]
    assert min(has for _, has in charged) > 0


def _cut_off(store: JobStore) -> None:
    """The client goes away within its samples."""

    def broken() -> Iterator[Request]:
        yield from requests_of(*map(noise, range(SIZE * 2)))
        raise ConnectionError

    with pytest.raises(ConnectionError):
        store.submit(broken(), TENANT)


def _left(store: JobStore) -> None:
    """The server dies before the job exists."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(submission.Submission, "discard", lambda self: None)
        patched.setattr(submission, "UNFINISHED_SECONDS", 1)  # expires: nobody sends more
        _cut_off(store)


def _expired(store: JobStore) -> None:
    """Its results have been there for their time."""
    job_id, ledger = store.submit(requests_of("a"), TENANT), Ledger(store.redis)
    assert ledger.commit(begin(ledger, job_id), replies(1.0)) == "committed"


def _refused(store: JobStore) -> None:
    """Some of it was taken, and then it was too much."""
    with pytest.raises(LimitReached):
        store.submit(requests_of(*map(noise, range(0, MOST_BYTES, 1000))), TENANT)


@pytest.mark.parametrize("end", [_cut_off, _left, _expired, _refused])
def test_nothing_leaks(reopen: Reopen, end: Callable[[JobStore], None]) -> None:
    """However a job goes, the key may have all of its bytes again once the queue has none of the job's."""
    store = reopen(REWARD_KEY_QUEUE_BYTES=MOST_BYTES, REWARD_JOB_TTL=1)
    for _ in range(3):
        end(store)
    eventually(lambda: not present(store))

    small = store.submit(requests_of("a"), TENANT)

    assert account(store) == present(store)
    store.cancel(TENANT, small)
    assert account(store) == 0
