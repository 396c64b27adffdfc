"""What a worker makes of a chunk: what is tried again, what is given up, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Event, Thread

import pytest

from rewardstack.errors import BudgetError, RequestError, SettingsError
from rewardstack.score import Request, Score
from rewardstack_rules.jobs import chunk as chunks
from rewardstack_rules.jobs.background import Background
from rewardstack_rules.jobs.chunk import MAX_DEATHS, WorkerContext
from rewardstack_rules.jobs.delivery import QUEUE, Delivery
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.store import JobStore
from rewardstack_rules.scoring.cancellation import AbandonedError, IsWanted
from tests.jobs.steps import begin, lapse, requests_of, results

RETRIES = 2


class Judge:
    """Stands for the service that scores, for faults that no sample can bring about.

    Args:
        is_model: whether samples wait for it.
        faults: what scoring a sample raises, or its score, by its text; otherwise it scores 1.0.
    """

    def __init__(self, *, is_model: bool = False, **faults: Score | Exception) -> None:
        self.is_model = is_model
        self.faults = faults
        self.asked: list[str] = []

    def may_wait(self, sources: Iterable[str]) -> bool:
        """Whether samples wait for it."""
        return self.is_model

    def group_of(self, request: Request) -> str | None:
        """No samples are compared with one another."""

    def score(
        self, requests: Sequence[Request], *, limit: float | None, tenant: str, is_wanted: IsWanted
    ) -> list[Score]:
        """The scores."""
        scores = []
        for request in requests:
            fault = self.faults.get(request.solution_str, Score(1.0))
            if isinstance(fault, Exception):
                raise fault
            scores.append(fault)
        self.asked += [request.solution_str for request in requests]
        return scores


def run(
    monkeypatch: pytest.MonkeyPatch,
    ledger: Ledger,
    judge: Judge,
    job_id: str,
    number: int = 0,
    background: Background | None = None,
) -> None:
    """What a worker does for a chunk."""
    shop = WorkerContext(judge, ledger, RETRIES, Delivery(ledger._redis), background or Background())  # type: ignore[arg-type]
    monkeypatch.setattr(chunks, "worker_context", lambda: shop)
    chunks.run(job_id, number)


def test_chunks_for_models_run_beside_others(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that waits for a model runs in a thread; without room it is left to others, as if it had not begun."""
    busy, release = Background(1), Event()
    assert busy.start(lambda: bool(release.wait(60)), lambda: None)
    job_id = store.submit(requests_of("a"), "")
    store.redis.delete(f"rq:queue:{QUEUE}")  # this worker has taken it

    run(monkeypatch, ledger, Judge(is_model=True), job_id, background=busy)

    assert results(store, job_id) == []
    assert {(job_id, 0)} == Delivery(store.redis).waiting()
    release.set()
    busy.finish()
    run(monkeypatch, ledger, Judge(is_model=True), job_id, background=busy)
    busy.finish()
    assert ["ok"] == [one["status"] for one in results(store, job_id)]


def test_threads_that_cannot_start(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk whose thread cannot start is released for the next sweep, and takes no thread from later ones."""
    few, start = Background(1), Thread.start

    def refuse(thread: Thread) -> None:
        monkeypatch.setattr(Thread, "start", start)
        raise RuntimeError("can't start new thread")

    job_id = store.submit(requests_of("a"), "")
    monkeypatch.setattr(Thread, "start", refuse)
    run(monkeypatch, ledger, Judge(is_model=True), job_id, background=few)

    assert few.has_capacity() and results(store, job_id) == []
    run(monkeypatch, ledger, Judge(is_model=True), job_id, background=few)
    few.finish()
    assert ["ok"] == [one["status"] for one in results(store, job_id)]


def test_a_long_chunk_makes_room(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another tenant waits, a chunk is left after a batch, keeps its scores, and has lost no attempt."""
    monkeypatch.setattr(chunks, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(chunks, "FIRST_BATCH", 2)
    job_id = store.submit(requests_of("a", "b", "c", "d"), "")
    store.redis.delete(f"rq:queue:{QUEUE}")
    other = store.submit(requests_of("x"), "other")
    judge = Judge()

    run(monkeypatch, ledger, judge, job_id)

    assert [one["index"] for one in results(store, job_id)] == [0, 1]
    assert Delivery(store.redis).waiting() == {(other, 0), (job_id, 0)}
    store.cancel("other", other)
    store.redis.delete(f"rq:queue:{QUEUE}")
    run(monkeypatch, ledger, judge, job_id)
    assert ["ok"] * 4 == [one["status"] for one in results(store, job_id)]
    assert sorted(judge.asked) == ["a", "b", "c", "d"]


def test_what_nobody_wants_is_left(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that is dropped while it is scored has no result, and is not postponed by this worker."""
    job_id = store.submit(requests_of("a", "b"), "")
    run(monkeypatch, ledger, Judge(a=AbandonedError()), job_id)
    assert results(store, job_id) == []
    assert store.redis.hget(f"rewardstack:jobs::job:{job_id}:tries", "0:postponed") is None


def test_a_spent_budget_is_not_tried_again(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was scored is kept, what the run's budget refused is failed, and the job has ended at once."""
    job_id = store.submit(requests_of("a", "over", "c"), "")
    spent = BudgetError("REWARDSTACK_MAX_REQUESTS: spent", scores=[Score(1.0), Score.failed("spent"), Score(1.0)])
    run(monkeypatch, ledger, Judge(over=spent), job_id)
    assert ["ok", "failed", "ok"] == [one["status"] for one in results(store, job_id)]
    assert "spent" == results(store, job_id)[1]["reason"]


def test_only_what_failed_is_tried_again(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt keeps what it found, also for readers; after the last one what failed is `failed`."""
    job_id = store.submit(requests_of("a", "bad", "c"), "")
    judge = Judge(bad=Score.failed("out of order"))
    for attempt in range(RETRIES + 1):
        assert [one["index"] for one in results(store, job_id)] == ([0] if attempt else [])
        before = store.redis.time()[0]
        run(monkeypatch, ledger, judge, job_id)
        if attempt < RETRIES:
            assert store.redis.zscore(f"rewardstack:jobs::job:{job_id}:due", "0") > before + 4

    assert ["a", "bad", "c", *["bad"] * RETRIES] == judge.asked
    assert ["ok", "failed", "ok"] == [one["status"] for one in results(store, job_id)]


def test_canceled_while_it_waits(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was scored before a job is canceled stays, although its chunk was to be tried again."""
    job_id = store.submit(requests_of("a", "b", "bad", "c"), "")
    run(monkeypatch, ledger, Judge(bad=Score.failed("out of order")), job_id)
    store.cancel("", job_id)
    assert [(0, 1.0), (1, 1.0)] == [(one["index"], one["value"]) for one in results(store, job_id)]
    assert 0 < store.redis.ttl(f"rewardstack:jobs::job:{job_id}:partial")


def test_a_sample_that_raises(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What scoring raises is a failure of the infrastructure: that sample is tried again, then it is told."""
    job_id = store.submit(requests_of("a", "b", "c"), "")
    for _ in range(RETRIES + 1):
        run(monkeypatch, ledger, Judge(b=OSError("disk")), job_id)

    assert [("ok", 1.0), ("failed", None), ("ok", 1.0)] == [
        (one["status"], one["value"]) for one in results(store, job_id)
    ]
    assert "raised OSError" in results(store, job_id)[1]["reason"]


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
    for _ in range(MAX_DEATHS):
        lapse(store, begin(ledger, job_id))
    judge = Judge()

    run(monkeypatch, ledger, judge, job_id)

    state = store.state("", job_id)
    assert state is not None and (state.status, judge.asked) == ("failed", [])
    assert f"{MAX_DEATHS} workers ended" in results(store, job_id)[0]["reason"]
