"""The worker's operations on jobs: claim, renew, postpone and commit chunks."""

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
from rewardstack_rules.jobs.link import RedisClient, parse_errors, redis_errors
from rewardstack_rules.jobs.state import COUNTED, read_state

LEASE = 10.0
"""Seconds after which a worker that does not renew its lease of a chunk loses the chunk."""
MAX_REASON_LENGTH = 500
"""Maximum number of characters of a job's error."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that this worker has claimed.

    Args:
        keys: keys of the job.
        number: number of the chunk in the job, from 0.
        start: position of the chunk's first sample in the job.
        samples: samples of the chunk. A sample that is invalid is replaced by a `Score` without a value.
        done: replies (scores as JSON, from `score_record`) of earlier attempts, by position in the chunk.
        attempts: number of attempts, including this one.
        postponements: number of earlier attempts that ended with a postponement.
        holder: random name of this attempt, which identifies the holder of the lease.
    """

    keys: JobKeys
    number: int
    start: int
    samples: list[Sample]
    done: dict[int, Record]
    attempts: int
    postponements: int
    holder: str = field(repr=False)

    @property
    def known_replies(self) -> dict[int, Record]:
        """Replies for samples that need not be scored, by position in the chunk."""
        scores = {at: score_record(sample) for at, sample in enumerate(self.samples) if isinstance(sample, Score)}
        return {**scores, **self.done}

    @property
    def pending(self) -> dict[int, Request]:
        """Samples to be scored, by position in the chunk."""
        known = self.known_replies
        return {at: sample for at, sample in enumerate(self.samples) if at not in known and isinstance(sample, Request)}

    @property
    def deaths(self) -> int:
        """Number of workers that died during this chunk."""
        return self.attempts - 1 - self.postponements


class Ledger:
    """Claims and commits chunks of one queue; thread-safe. Methods raise `ServiceError` if the queue does not answer.

    Args:
        redis: client of the queue's Redis.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._begin = redis.register_script(scripts.BEGIN)
        self._renew = redis.register_script(scripts.RENEW)
        self._postpone = redis.register_script(scripts.POSTPONE)
        self._commit = redis.register_script(scripts.COMMIT)

    def begin(self, job_id: str, number: int) -> Chunk | None:
        """Claim a chunk; return None if it has a result, if another worker holds it, or if its job has ended."""
        with redis_errors():
            tenant = self._redis.hget(OPEN, job_id)
            if tenant is None:
                return None
            keys, holder = JobKeys(tenant.decode(), job_id), secrets.token_hex(8)
            found = self._begin(keys.script_keys(), [job_id, number, holder, LEASE])
        if found is None:
            return None
        attempts, postponements, data, partial, starts, items = found
        with parse_errors():
            bounds = [*json.loads(starts), int(items)]
            start, size = bounds[number], bounds[number + 1] - bounds[number]
        done = unpack_partial(partial)
        samples = unpack_input(data, size)
        return Chunk(keys, number, start, samples, done, int(attempts), int(postponements), holder)

    def renew(self, chunk: Chunk) -> bool:
        """Renew the lease of a chunk; return whether this worker still holds the lease."""
        return bool(self._call(self._renew, chunk, chunk.holder, LEASE))

    def postpone(self, chunk: Chunk, delay: float, done: Mapping[int, Record]) -> None:
        """Postpone a chunk by `delay` seconds. The next attempt scores only samples that are not in `done`."""
        self._call(self._postpone, chunk, chunk.holder, delay, pack_partial(done), 1)

    def release(self, chunk: Chunk, done: Mapping[int, Record] | None = None) -> None:
        """Release a chunk without counting the attempt. If it is not in the queue, the next sweep puts it there.

        Args:
            chunk: a chunk that this worker holds.
            done: the replies so far, by position in the chunk; None if there is nothing new.
        """
        self._call(self._postpone, chunk, chunk.holder, 0, pack_partial(done) if done else "", 0)

    def commit(self, chunk: Chunk, replies: Sequence[Record]) -> str:
        """Commit `replies` as the result of a chunk.

        Returns:
            `committed`; `duplicate` if the chunk already has a result; `dropped` if the job has ended.
        """
        counts = Counter(reply["status"] for reply in replies)
        counts["cached"] = sum(reply["cached"] for reply in replies)
        pairs = [part for name in COUNTED for part in (name, counts[name])]
        common = _common_error(replies)
        outcome, *ended = self._call(self._commit, chunk, pack_result(chunk.start, replies), *common, *pairs)
        for values in ended:
            self._log_end(chunk.keys, values)
        return str(outcome.decode())

    @staticmethod
    def _log_end(keys: JobKeys, values: Sequence[bytes | None]) -> None:
        with parse_errors():
            state = read_state(keys.job_id, values)
        if state is not None and state.ended is not None:
            seconds = round(state.ended - state.submitted, 3)
            audit.log_event(state.status, keys, items=state.items, statuses=state.statuses, seconds=seconds)

    @staticmethod
    def _call(script: Any, chunk: Chunk, *arguments: Any) -> Any:
        with redis_errors():
            return script(chunk.keys.script_keys(), [chunk.keys.job_id, chunk.number, *arguments])


def _common_error(replies: Sequence[Record]) -> tuple[str, str]:
    """Return the option of `extra_info` that is invalid in every sample, and why.

    If there is no such option, return two empty strings.
    """
    field = str(replies[0].get("field", ""))
    if not field.startswith(OPTIONS) or any(reply.get("field") != field for reply in replies):
        return "", ""
    return field, str(replies[0].get("reason"))[:MAX_REASON_LENGTH]
