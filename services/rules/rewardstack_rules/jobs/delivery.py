"""Deliver chunks to workers through RQ: `Delivery` holds the queues, `ChunkJob` restricts what workers run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from redis.exceptions import RedisError
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.utils import str_to_date

from rewardstack.errors import ConfigError
from rewardstack_rules.jobs.keys import LAST_TURN, OPEN, TURNS
from rewardstack_rules.jobs.link import RedisClient
from rewardstack_rules.jobs.scripts import TURN

QUEUE = "rewardstack"
"""Queue to which every chunk is sent first."""
MODEL_QUEUE = f"{QUEUE}-models"
"""Queue for chunks that need a background thread, because scoring them may wait for a model or a program. A worker that
takes such a chunk from `QUEUE` and has no free thread puts it here."""
FUNCTION = "rewardstack_rules.jobs.chunk.run"
CHUNK_TIMEOUT = 3600
"""Maximum seconds that a worker's main thread may take for a chunk. Chunks in other threads have no such limit."""
FAILURE_TTL = 3600
"""Seconds for which RQ keeps the record of an RQ job that raised."""
BATCH = 1000
"""Maximum number of chunks that are sent to Redis at a time."""

ChunkId = tuple[str, int]
"""The id of a chunk: the id of its job, and its number in the job, from 0."""


class ChunkJob(Job):
    """An RQ job: one delivery of one chunk.

    RQ itself would import and call any function that a queue entry names, and send requests to the entry's webhooks.
    This class calls only `FUNCTION`, so write access to the queue's Redis does not suffice to run code in a worker.
    """

    @property
    def func(self) -> Callable[..., Any]:
        """The function to call: always `FUNCTION`.

        Raises:
            ConfigError: the entry names another function.
        """
        if self.func_name != FUNCTION or self.instance is not None:
            raise ConfigError("the queue holds an entry that rewardstack did not write; it is not run")
        found: Callable[..., Any] = super().func
        return found

    def restore(self, raw_data: dict[Any, Any]) -> None:
        """Read the entry, but ignore its callbacks and webhooks."""
        super().restore(raw_data)
        self.webhooks = []
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = None


class FairQueue(Queue):
    """A queue out of which tenants take turns."""

    @classmethod
    def lpop(cls, queue_keys: Sequence[str], timeout: int | None, connection: Any = None) -> Any:
        """Return the key of the first queue that has an entry, and the next entry; wait if there is none."""
        for key in queue_keys:
            if entry := _turn(connection, key, "take"):
                return key, entry
        return super().lpop(queue_keys, timeout, connection)

    @classmethod
    def lmove(cls, connection: Any, queue_key: str, timeout: int | None) -> Any:
        """Do the same for a single queue."""
        return cls.lpop([queue_key], timeout, connection)


def _turn(connection: Any, queue_key: str, what: str) -> bytes:
    found: bytes = connection.register_script(TURN)([queue_key, OPEN, TURNS, LAST_TURN], [what])
    return found


class Delivery:
    """Sends chunks to `QUEUE` and `MODEL_QUEUE`, and reads both queues.

    Args:
        redis: client of the queue's Redis.
    """

    def __init__(self, redis: RedisClient) -> None:
        self.queues = [
            Queue(name, connection=redis, job_class=ChunkJob, serializer=JSONSerializer)
            for name in (QUEUE, MODEL_QUEUE)
        ]

    def send(self, chunks: Iterable[ChunkId]) -> None:
        """Put chunks into `QUEUE`. Queueing a chunk twice is harmless, because only one worker can claim it."""
        chunks = iter(chunks)
        while batch := list(islice(chunks, BATCH)):
            self.queues[0].enqueue_many([self._entry(job_id, number) for job_id, number in batch])

    def send_to_model_queue(self, chunk: ChunkId) -> None:
        """Put a chunk into `MODEL_QUEUE`, from which the next worker with a free thread for such chunks takes it."""
        self.queues[1].enqueue_many([self._entry(*chunk)])

    def others_wait(self, tenant: str) -> bool:
        """Return whether a chunk of another tenant is queued; False if the queue does not answer."""
        with suppress(RedisError):
            return any(_turn(queue.connection, queue.key, f"except {tenant}") for queue in self.queues)
        return False

    def count(self) -> int:
        """Return the number of queued chunks."""
        return sum(queue.count for queue in self.queues)

    def waiting(self) -> set[ChunkId]:
        """Return the ids of the queued chunks, parsed from RQ's ids (`_entry`). Ignore entries with malformed ids."""
        found = (ident.split("-") for queue in self.queues for ident in self._idents(queue, 0, -1))
        return {(parts[0], int(parts[1])) for parts in found if len(parts) == 3 and parts[1].isdecimal()}

    def longest_wait(self) -> float:
        """Return how long the oldest chunk has waited in its queue, in seconds; 0 if no chunk is queued."""
        return max(map(self._longest_wait, self.queues))

    def _longest_wait(self, queue: Queue) -> float:
        for ident in self._idents(queue, 0, 0):
            sent = queue.connection.hget(ChunkJob.key_for(ident), "enqueued_at")
            if sent is not None:  # None if a worker has just removed the entry
                return max(0.0, (datetime.now(timezone.utc) - str_to_date(sent)).total_seconds())
        return 0.0

    @staticmethod
    def _idents(queue: Queue, first: int, last: int) -> list[str]:
        """Return RQ's ids of the entries from index `first` to `last`. Unlike RQ itself, accept malformed ids."""
        found: list[Any] = queue.connection.lrange(queue.key, first, last)
        return [bytes(ident).decode(errors="replace") for ident in found]

    @staticmethod
    def _entry(job_id: str, number: int) -> Any:
        return Queue.prepare_data(
            FUNCTION,
            args=(job_id, number),
            job_id=f"{job_id}-{number}-{secrets.token_hex(4)}",
            timeout=CHUNK_TIMEOUT,
            result_ttl=0,
            failure_ttl=FAILURE_TTL,
        )
