"""Steps of the tests that take a chunk through its life by hand."""

from __future__ import annotations

import json
from typing import Any

from rewardstack.core.wire import score_record
from rewardstack.score import Request, Score
from rewardstack_rules.jobs.ledger import Chunk, Ledger, Record
from rewardstack_rules.jobs.store import JobStore

SIZE = 4
"""Samples in a chunk."""
LEASE = 3600.0
"""Seconds for which a worker has a chunk."""


def requests_of(*texts: str) -> list[Request]:
    """Samples of these texts."""
    return [Request("gsm8k", text) for text in texts]


def begin(ledger: Ledger, job_id: str, number: int = 0) -> Chunk:
    """A chunk that is there to be begun."""
    chunk = ledger.begin(job_id, number)
    assert chunk is not None
    return chunk


def replies(value: float) -> list[Record]:
    """A result of a whole chunk."""
    return [score_record(Score(value))] * SIZE


def results(store: JobStore, job_id: str) -> list[dict[str, Any]]:
    """A job's lines, as far as there are any."""
    return [json.loads(line) for line in b"".join(store.results("", job_id, partial=True)).splitlines()]


def lapse(store: JobStore, chunk: Chunk) -> None:
    """Time goes by: nothing was heard of the chunk's worker for too long."""
    store.redis.hset(chunk.keys["tries"], f"{chunk.number}:until", 0)
    store.redis.zadd(chunk.keys["due"], {str(chunk.number): 0}, xx=True)
