"""What becomes of a chunk, step by step, on a real queue: who has it, what counts, when it is given up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import redis

from rewardstack.errors import ConfigError, RequestError, SettingsError
from rewardstack.score import Request, Score
from rewardstack_rules.jobs import chunk as chunks
from rewardstack_rules.jobs.chunk import MOST_DEATHS, Workshop
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.durability import confirm_written
from rewardstack_rules.jobs.ledger import Chunk, Ledger, Reply
from rewardstack_rules.jobs.store import Conflict, JobStore
from rewardstack_rules.jobs.submission import CHUNK_CHARACTERS
from rewardstack_rules.jobs.sweeper import Sweeper
from rewardstack_rules.protocols.score import reply_of
from rewardstack_rules.settings import Settings
from tests.support.jobs import Queue

RETRIES = 2
SIZE = 4


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """A real Redis."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    one = Queue(tmp_path_factory.mktemp("queue"))
    yield one
    one.kill()


@pytest.fixture
def store(queue: Queue) -> JobStore:
    """The jobs of an empty queue."""
    redis.Redis.from_url(queue.url).flushall()
    return JobStore(Settings.from_env({"REWARD_QUEUE_URL": queue.url, "REWARD_JOB_CHUNK_SIZE": str(SIZE)}))


@pytest.fixture
def ledger(store: JobStore) -> Ledger:
    """Its chunks."""
    return Ledger(store.redis)


class Judge:
    """Stands for the service that scores, for faults that no sample can bring about.

    Args:
        faults: what scoring a sample raises, or its score, by its text; otherwise it scores 1.0.
    """

    def __init__(self, **faults: ConfigError | Score | Exception) -> None:
        self.faults = faults
        self.asked: list[str] = []

    def score(self, requests: Sequence[Request], *, limit: float | None, tenant: str) -> list[Score]:
        """The scores."""
        scores = []
        for request in requests:
            fault = self.faults.get(request.solution_str, Score(1.0))
            if isinstance(fault, Exception):
                raise fault
            scores.append(fault)
        self.asked += [request.solution_str for request in requests]
        return scores


def requests_of(*texts: str) -> list[Request]:
    """Samples of these texts."""
    return [Request("gsm8k", text) for text in texts]


def begin(ledger: Ledger, job_id: str, number: int = 0) -> Chunk:
    """A chunk that is there to be begun."""
    chunk = ledger.begin(job_id, number)
    assert chunk is not None
    return chunk


def replies(value: float) -> list[Reply]:
    """A result of a whole chunk."""
    return [reply_of(Score(value))] * SIZE


def results(store: JobStore, job_id: str) -> list[dict[str, Any]]:
    """A job's lines, as far as there are any."""
    return [json.loads(line) for line in b"".join(store.results("", job_id, partial=True)).splitlines()]


def lapse(store: JobStore, chunk: Chunk) -> None:
    """Time goes by: nothing was heard of the chunk's worker for too long."""
    store.redis.hset(chunk.keys["tries"], f"{chunk.number}:until", 0)
    store.redis.zadd(chunk.keys["due"], {str(chunk.number): 0}, xx=True)


def run(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, judge: Judge, job_id: str, number: int = 0) -> None:
    """What a worker does for a chunk."""
    monkeypatch.setattr(chunks, "workshop", lambda: Workshop(judge, ledger, RETRIES))  # type: ignore[arg-type]
    chunks.run(job_id, number)


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

    ledger.put_off(late, 0, {})
    ledger.hand_back(late)

    assert (False, True) == (ledger.renew(late), ledger.renew(quick))
    assert ledger.begin(job_id, 0) is None


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


def test_only_what_failed_is_tried_again(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt keeps what it found; after the last one what failed is `failed`."""
    job_id = store.submit(requests_of("a", "bad", "c"), "")
    judge = Judge(bad=Score.failed("out of order"))
    for attempt in range(RETRIES + 1):
        assert results(store, job_id) == []
        run(monkeypatch, ledger, judge, job_id)
        if attempt < RETRIES:
            assert store.redis.zscore(f"rewardstack:jobs::job:{job_id}:due", "0") > store.redis.time()[0] + 4

    assert ["a", "bad", "c", *["bad"] * RETRIES] == judge.asked
    assert ["ok", "failed", "ok"] == [one["status"] for one in results(store, job_id)]


def test_a_worker_that_raises(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What scoring raises is a failure of the infrastructure: tried again, then told."""
    job_id = store.submit(requests_of("a", "b"), "")
    for _ in range(RETRIES + 1):
        run(monkeypatch, ledger, Judge(b=OSError("disk")), job_id)

    assert [("failed", None)] * 2 == [(one["status"], one["value"]) for one in results(store, job_id)]
    assert "raised OSError" in results(store, job_id)[0]["reason"]


def test_a_malformed_sample_harms_no_other(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose own shape is at fault goes unscored; whose route is not set up is failed; the rest is scored."""
    job_id = store.submit(requests_of("a", "malformed", "c", "unset"), "")
    judge = Judge(malformed=RequestError("extra_info.votes: no"), unset=SettingsError("LLM_JUDGE_SERVER_URL: unset"))
    for _ in range(RETRIES + 1):
        run(monkeypatch, ledger, judge, job_id)

    assert ["ok", "unscored", "ok", "failed"] == [one["status"] for one in results(store, job_id)]
    assert ["a", "c"] == judge.asked


def test_a_chunk_that_kills_its_workers(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up after some of them; the samples are `failed`, and the job ends."""
    job_id = store.submit(requests_of("a"), "")
    for _ in range(MOST_DEATHS):
        lapse(store, begin(ledger, job_id))
    judge = Judge()

    run(monkeypatch, ledger, judge, job_id)

    state = store.state("", job_id)
    assert state is not None and (state.status, judge.asked) == ("failed", [])
    assert f"{MOST_DEATHS} workers ended" in results(store, job_id)[0]["reason"]


def test_handing_back_is_no_death(store: JobStore, ledger: Ledger) -> None:
    """A chunk that a worker hands back is as if it had not been begun."""
    job_id = store.submit(requests_of("a"), "")
    for _ in range(MOST_DEATHS + 1):
        ledger.hand_back(begin(ledger, job_id))

    assert 0 == begin(ledger, job_id).deaths


def test_sweeping(store: JobStore, ledger: Ledger) -> None:
    """Sent again is what is overdue, and neither waiting in the queue nor with a worker."""
    job_id = store.submit(requests_of(*map(str, range(3 * SIZE))), "")
    sweeper, delivery = Sweeper(store.redis, "test"), Delivery(store.redis)
    assert 0 == sweeper.sweep()
    store.redis.zadd(f"rewardstack:jobs::job:{job_id}:due", {"0": 0, "1": 0, "2": 0})
    assert 0 == sweeper.sweep()
    delivery.queue.empty()
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
            sizes.append(len(chunk.requests))
            ledger.commit(chunk, [reply_of(Score(float(len(one.solution_str)))) for one in chunk.requests])

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


def test_what_a_queue_says_about_its_disk() -> None:
    """A Redis that can be asked is asked; where it does not confirm in time, there is no job."""
    for written, words in [(1, ""), (0, "did not write to its disk")]:
        link = Asked(written)
        if words:
            with pytest.raises(Exception, match=words):
                confirm_written(link)
        else:
            confirm_written(link)
        assert "WAITAOF" in link.commands


class Asked:
    """Stands for a Redis 7.2 that writes every second, which this machine may not have.

    Args:
        written: whether it says that it has written.
    """

    def __init__(self, written: int) -> None:
        self.commands: list[str] = []
        self._written = written

    def config_get(self, name: str) -> dict[str, str]:
        """Its options."""
        return {name: {"appendonly": "yes", "appendfsync": "everysec", "maxmemory": "0"}.get(name, "noeviction")}

    def pipeline(self, transaction: bool) -> Asked:
        """Itself."""
        return self

    def incr(self, name: str) -> Asked:
        """A write."""
        return self

    def execute_command(self, *command: Any) -> Asked:
        """Takes a command down."""
        self.commands.append(command[0])
        return self

    def execute(self) -> list[Any]:
        """The answers."""
        return [1, [self._written, 0]]
