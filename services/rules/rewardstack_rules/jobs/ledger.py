"""Jobs as a worker sees them: chunks that are begun, kept, put off, committed."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardstack.core.fields import OPTIONS
from rewardstack.core.wire import Record, score_record
from rewardstack.score import Request, Score
from rewardstack_rules.jobs import audit, scripts
from rewardstack_rules.jobs.codec import Sample, pack_partial, pack_result, unpack_input, unpack_partial
from rewardstack_rules.jobs.keys import OPEN, JobKeys
from rewardstack_rules.jobs.link import RedisClient, reaching, reading
from rewardstack_rules.jobs.state import COUNTED, read_state

LEASE = 10.0
"""Seconds that a chunk stays a worker's of which nothing is heard."""
LONGEST_REASON = 500
"""Characters of what a job says is wrong with all its samples."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that is this worker's.

    Args:
        keys: of its job.
        number: in the job, from 0.
        start: position of its first sample in the job.
        samples: its samples; the score of one that cannot be scored.
        done: what an earlier attempt found, by position in the chunk.
        begun: how often it was begun, this time included.
        put_off: how often an attempt of it ended without a result.
        holder: the name of this attempt.
    """

    keys: JobKeys
    number: int
    start: int
    samples: list[Sample]
    done: dict[int, Record]
    begun: int
    put_off: int
    holder: str = field(repr=False)

    @property
    def settled(self) -> dict[int, Record]:
        """What is said of samples that need not be scored, by position in the chunk."""
        return {**{at: score_record(one) for at, one in enumerate(self.samples) if isinstance(one, Score)}, **self.done}

    @property
    def wanted(self) -> dict[int, Request]:
        """The samples that are to be scored, by position in the chunk."""
        settled = self.settled
        return {at: one for at, one in enumerate(self.samples) if at not in settled and isinstance(one, Request)}

    @property
    def deaths(self) -> int:
        """How many workers were lost over it."""
        return self.begun - 1 - self.put_off


class Ledger:
    """The chunks of one queue; for any thread. Its methods raise `ServiceError` where the queue does not answer.

    Args:
        redis: of the queue.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._begin = redis.register_script(scripts.BEGIN)
        self._renew = redis.register_script(scripts.RENEW)
        self._put_off = redis.register_script(scripts.PUT_OFF)
        self._commit = redis.register_script(scripts.COMMIT)

    def begin(self, job_id: str, number: int) -> Chunk | None:
        """The chunk; None where it needs nobody: it has a result, or a worker, or its job has ended."""
        with reaching():
            tenant = self._redis.hget(OPEN, job_id)
            if tenant is None:
                return None
            keys, holder = JobKeys(tenant.decode(), job_id), secrets.token_hex(8)
            found = self._begin(keys.of_scripts(), [job_id, number, holder, LEASE])
        if found is None:
            return None
        begun, put_off, data, partial, starts, items = found
        with reading():
            bounds = [*json.loads(starts), int(items)]
            start, size = bounds[number], bounds[number + 1] - bounds[number]
        done = unpack_partial(partial)
        return Chunk(keys, number, start, unpack_input(data, size), done, int(begun), int(put_off), holder)

    def renew(self, chunk: Chunk) -> bool:
        """Keeps the chunk for another `LEASE`; whether it is still this worker's."""
        return bool(self._call(self._renew, chunk, chunk.holder, LEASE))

    def put_off(self, chunk: Chunk, delay: float, done: Mapping[int, Record]) -> None:
        """Gives the chunk back, to be tried again after `delay` seconds for what is not in `done`."""
        self._call(self._put_off, chunk, chunk.holder, delay, pack_partial(done))

    def hand_back(self, chunk: Chunk) -> None:
        """Gives the chunk back, as if it had not been begun."""
        self._call(self._put_off, chunk, chunk.holder, 0, "")

    def commit(self, chunk: Chunk, replies: Sequence[Record]) -> str:
        """Makes `replies` the chunk's result.

        Returns:
            `committed`, or `duplicate` where it has one already, or `dropped` where its job has ended.
        """
        counts = Counter(reply["status"] for reply in replies)
        counts["cached"] = sum(reply["cached"] for reply in replies)
        pairs = [part for name in COUNTED for part in (name, counts[name])]
        blamed = _blamed(replies)
        outcome, *ended = self._call(self._commit, chunk, pack_result(chunk.start, replies), *blamed, *pairs)
        for values in ended:
            self._tell_end(chunk.keys, values)
        return str(outcome.decode())

    @staticmethod
    def _tell_end(keys: JobKeys, values: Sequence[bytes | None]) -> None:
        with reading():
            state = read_state(keys.job_id, values)
        if state is not None and state.ended is not None:
            seconds = round(state.ended - state.submitted, 3)
            audit.tell(state.status, keys, items=state.items, statuses=state.statuses, seconds=seconds)

    @staticmethod
    def _call(script: Any, chunk: Chunk, *arguments: Any) -> Any:
        with reaching():
            return script(chunk.keys.of_scripts(), [chunk.keys.job_id, chunk.number, *arguments])


def _blamed(replies: Sequence[Record]) -> tuple[str, str]:
    """The option of `extra_info` that is wrong in every one of a chunk's samples, and how; empty where none is."""
    field = str(replies[0].get("field", ""))
    if not field.startswith(OPTIONS) or any(reply.get("field") != field for reply in replies):
        return "", ""
    return field, str(replies[0].get("reason"))[:LONGEST_REASON]
