"""Samples that are sent slowly: those of a job that was accepted are all there, or are said to be lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rewardstack.errors import OverloadError, UnreachableError
from rewardstack.score import Request
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.store import JobStore
from tests.jobs.steps import SIZE, requests_of, results
from tests.jobs.test_attempts import Judge, run

CHUNKS = 6
LITTLE = 600
"""Seconds that samples are kept when nearly all of their time has gone by."""


def test_longer_than_its_samples_are_kept(store: JobStore) -> None:
    """As long as something comes, what came before stays, however long the whole takes."""
    kept: list[int] = []

    def slowly() -> Iterator[Request]:
        for at, request in enumerate(requests_of(*map(str, range(SIZE * CHUNKS)))):
            if at > SIZE and at % SIZE == 1:  # another chunk was written
                [samples] = store.redis.scan_iter("rewardstack:jobs:*:input")
                kept.append(store.redis.ttl(samples))
                store.redis.expire(samples, LITTLE)
            yield request

    job_id = store.submit(slowly(), "")

    assert len(kept) == CHUNKS - 1 and min(kept) > LITTLE
    assert store.redis.hlen(f"rewardstack:jobs::job:{job_id}:input") == CHUNKS


def test_samples_that_expired_meanwhile(store: JobStore) -> None:
    """Where some have gone before the last came there is no job, the sender is told, and nothing is left behind."""

    def too_slowly() -> Iterator[Request]:
        for at, request in enumerate(requests_of(*map(str, range(SIZE * CHUNKS)))):
            if at == SIZE * 3:
                store.redis.delete(*store.redis.scan_iter("rewardstack:jobs:*:input"))
            yield request

    with pytest.raises(OverloadError, match="submit the job again"):
        store.submit(too_slowly(), "", "key")
    assert not list(store.redis.scan_iter("rewardstack:jobs:*:*"))
    assert store.redis.hlen("rewardstack:jobs:open") == 0


def test_an_answer_that_is_lost(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody hears that the job is there, it keeps its samples for the sender who tries again."""
    publish = store._publish

    def unheard(*arguments: Any) -> None:
        publish(*arguments)
        raise redis.ConnectionError("lost")

    monkeypatch.setattr(store, "_publish", unheard)
    with pytest.raises(UnreachableError):
        store.submit(requests_of("a"), "", "key")
    monkeypatch.undo()

    job_id = store.submit(requests_of("a"), "", "key")
    assert store.redis.hlen(f"rewardstack:jobs::job:{job_id}:input") == 1


def test_samples_that_are_gone(store: JobStore, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose samples the queue has lost comes to its end all the same: they are failed, the others scored."""
    job_id = store.submit(requests_of(*map(str, range(SIZE * 2))), "")
    store.redis.hdel(f"rewardstack:jobs::job:{job_id}:input", "0")
    for number in range(2):
        run(monkeypatch, ledger, Judge(), job_id, number)

    assert ["failed"] * SIZE + ["ok"] * SIZE == [one["status"] for one in results(store, job_id)]
    assert getattr(store.state("", job_id), "status", "") == "finished"
