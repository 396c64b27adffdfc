"""RQ as the carrier of chunks: what is put into its queue, and the only thing that a worker runs out of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.utils import str_to_date

from rewardstack.errors import ConfigError
from rewardstack_rules.jobs.link import RedisClient

QUEUE = "rewardstack"
MODEL_QUEUE = f"{QUEUE}-models"
"""Where workers put chunks that wait for models, if they have as many of these as they may."""
FUNCTION = "rewardstack_rules.jobs.chunk.run"
CHUNK_SECONDS = 3600
"""How long a chunk may be worked on; the pipeline's own deadlines come long before."""
KEPT_SECONDS = 3600
"""How long RQ keeps what it knows of a run that raised."""
BATCH = 1000
"""Chunks that are sent to Redis at a time."""

Chunk = tuple[str, int]
"""A job's id and the chunk's number."""


class ChunkJob(Job):
    """What RQ calls a job: one delivery of one chunk.

    RQ imports and calls whatever a queue's entry names. This one calls `FUNCTION` and no callbacks, so that writing to
    the queue's Redis is not enough to run code in a worker.
    """

    @property
    def func(self) -> Callable[..., Any]:
        """The function.

        Raises:
            ConfigError: the entry names another one.
        """
        if self.func_name != FUNCTION or self.instance is not None:
            raise ConfigError("the queue holds an entry that rewardstack did not write; it is not run")
        found: Callable[..., Any] = super().func
        return found

    def restore(self, raw_data: dict[Any, Any]) -> None:
        """Reads the entry, but for the names of callbacks."""
        super().restore(raw_data)
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = None


class Delivery:
    """The queue for all chunks, and the one for those that wait for models.

    Args:
        redis: where they are.
    """

    def __init__(self, redis: RedisClient) -> None:
        self.queues = [
            Queue(name, connection=redis, job_class=ChunkJob, serializer=JSONSerializer)
            for name in (QUEUE, MODEL_QUEUE)
        ]

    def send(self, chunks: Iterable[Chunk]) -> None:
        """Has a worker run `chunk.run` for each of these; a chunk that is sent twice does no harm."""
        chunks = iter(chunks)
        while batch := list(islice(chunks, BATCH)):
            self.queues[0].enqueue_many([self._entry(job_id, number) for job_id, number in batch])

    def send_to_models(self, chunk: Chunk) -> None:
        """Sends a chunk to the next worker that has room for one that waits for models."""
        self.queues[1].enqueue_many([self._entry(*chunk)])

    def count(self) -> int:
        """How many chunks no worker has taken yet."""
        return sum(queue.count for queue in self.queues)

    def waiting(self) -> set[Chunk]:
        """The chunks that no worker has taken yet."""
        found = (ident.split("-") for queue in self.queues for ident in self._idents(queue, 0, -1))
        return {(parts[0], int(parts[1])) for parts in found if len(parts) == 3 and parts[1].isdecimal()}

    def longest_wait(self) -> float:
        """Seconds that the chunk at the head of a queue has waited since it was sent there; 0 where none waits."""
        return max(map(self._longest_wait, self.queues))

    def _longest_wait(self, queue: Queue) -> float:
        for ident in self._idents(queue, 0, 0):
            sent = queue.connection.hget(ChunkJob.key_for(ident), "enqueued_at")
            if sent is not None:  # a worker may just have taken it
                return max(0.0, (datetime.now(timezone.utc) - str_to_date(sent)).total_seconds())
        return 0.0

    @staticmethod
    def _idents(queue: Queue, first: int, last: int) -> list[str]:
        """RQ's names of some entries, as far as they are texts at all; RQ itself would stop at one that is none."""
        found: list[Any] = queue.connection.lrange(queue.key, first, last)
        return [bytes(ident).decode(errors="replace") for ident in found]

    @staticmethod
    def _entry(job_id: str, number: int) -> Any:
        return Queue.prepare_data(
            FUNCTION,
            args=(job_id, number),
            job_id=f"{job_id}-{number}-{secrets.token_hex(4)}",
            timeout=CHUNK_SECONDS,
            result_ttl=0,
            failure_ttl=KEPT_SECONDS,
        )
