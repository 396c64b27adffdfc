"""Jobs as the reward server sees them: taken, looked up, streamed, canceled."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from rewardstack.errors import OverloadError, UnreachableError
from rewardstack.score import Request
from rewardstack_rules.jobs import audit, scripts
from rewardstack_rules.jobs.codec import unpack_lines
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.durability import confirm_written
from rewardstack_rules.jobs.keys import OPEN, JobKeys, idempotency_key, new_job_id
from rewardstack_rules.jobs.limits import too_many
from rewardstack_rules.jobs.link import connect, reaching, reading
from rewardstack_rules.jobs.state import FIELDS, JobState, read_state
from rewardstack_rules.jobs.submission import Submission
from rewardstack_rules.settings import Settings

GRACE = 30.0
"""Seconds after which a submitted chunk that is neither queued nor begun counts as lost."""

EXPIRED = "its samples have expired while they were sent; send them again, and faster"
TAKEN = "the queue holds something else under this Idempotency-Key; send another one"
TOO_MANY = b"too many"
KNOWN = re.compile(rb"^([0-9a-f]{32}):([0-9a-f]{32})\Z")
"""What stands under an idempotency key: a job's id and the digest of its samples."""


class Conflict(Exception):
    """An idempotency key came again with other samples."""


class JobStore:
    """The jobs of one queue; for any thread. Its methods raise `ServiceError` where the queue does not do its part.

    Args:
        settings: which queue, the size of chunks, how long results stay, what a tenant may have at most.
    """

    def __init__(self, settings: Settings) -> None:
        self.redis = connect(settings.queue_url)
        self._delivery = Delivery(self.redis)
        self._chunk_size = settings.job_chunk_size
        self._ttl = settings.job_ttl
        self._limits = settings.job_limits
        self._publish = self.redis.register_script(scripts.PUBLISH)
        self._cancel = self.redis.register_script(scripts.CANCEL)

    def submit(self, requests: Iterable[Request], tenant: str, key: str = "") -> str:
        """Takes a job; when this returns, it is on the queue's disk.

        Args:
            requests: its samples, which may be read as they come.
            tenant: whose job it is.
            key: a name of the caller's own, by which the same job is recognised when it comes again; empty for none.

        Returns:
            Its id; that of the earlier job where `key` came before.

        Raises:
            Conflict: `key` came before, with other samples.
            LimitReached: the tenant has as much in the queue as it may; `NeverFits` where this job alone is more.
            Exception: whatever `requests` raises; there is no job then.
        """
        keys, known_as = JobKeys(tenant, new_job_id()), idempotency_key(tenant, key) if key else ""
        with reaching():
            known = bool(known_as and self.redis.exists(known_as))
            submission = Submission(self.redis, keys, self._chunk_size, self._limits.queue_bytes)
            if known:  # it is charged for and stored: that it is the same is all that is asked
                submission.read(requests)
            else:
                self._require_place(tenant)
                submission.write(requests)
            job_id, digest = self._announce(keys, submission, known_as)
            if job_id != keys.job_id:
                submission.discard()
                if digest != submission.digest:
                    raise Conflict
                return job_id
            self._keep(keys)
            sources = audit.commonest(submission.sources)
            audit.tell("submitted", keys, items=submission.items, bytes=submission.bytes, sources=sources)
            self._delivery.send((job_id, number) for number in range(len(submission.starts)))
        return job_id

    def _require_place(self, tenant: str) -> None:
        """Saves the tenant the sending of samples that would be refused at their end."""
        most = self._limits.open_jobs
        if most is not None and self.redis.hvals(OPEN).count(tenant.encode()) >= most:
            raise too_many(most)

    def _announce(self, keys: JobKeys, submission: Submission, key: str) -> tuple[str, str]:
        starts = json.dumps(submission.starts)
        counts = (submission.items, len(submission.starts), starts, self._ttl, GRACE, self._limits.open_jobs or "")
        found = self._publish(keys.of_scripts(), [keys.job_id, keys.tenant, key, submission.digest, *counts])
        known = KNOWN.match(found)
        if known is None:
            # Not where nothing was heard: then the job may be there, and needs its samples.
            submission.discard()
            if found == TOO_MANY:
                raise too_many(self._limits.open_jobs)
            raise OverloadError(EXPIRED) if not found else UnreachableError(TAKEN)
        return known[1].decode(), known[2].decode()

    def _keep(self, keys: JobKeys) -> None:
        try:
            confirm_written(self.redis)
        except BaseException:
            self._cancel(keys.of_scripts(), [keys.job_id])
            raise

    def state(self, tenant: str, job_id: str) -> JobState | None:
        """How a job stands; None where the tenant has none of that name."""
        with reaching(), reading():
            return read_state(job_id, self.redis.hmget(JobKeys(tenant, job_id)["meta"], FIELDS))

    def open_jobs(self, tenant: str, most: int) -> list[JobState]:
        """How the jobs of a tenant stand that have not ended, the latest first.

        Args:
            tenant: whose jobs.
            most: how many of them.
        """
        with reaching(), reading():
            names = [job.decode() for job, owner in self.redis.hgetall(OPEN).items() if owner == tenant.encode()]
            pipe = self.redis.pipeline(transaction=False)
            for name in names:
                pipe.hmget(JobKeys(tenant, name)["meta"], FIELDS)
            states = [read_state(name, values) for name, values in zip(names, pipe.execute(), strict=True)]
        known = [state for state in states if state is not None]
        return sorted(known, key=lambda state: -state.submitted)[:most]

    def cancel(self, tenant: str, job_id: str) -> None:
        """Ends a job that has not ended: what is committed stays, the rest is not scored, or not taken."""
        keys = JobKeys(tenant, job_id)
        with reaching():
            ended = self._cancel(keys.of_scripts(), [job_id])
        if ended:
            audit.tell("canceled", keys)

    def results(
        self, tenant: str, job_id: str, first: int = 0, count: int | None = None, *, partial: bool = False
    ) -> Iterator[bytes]:
        """The results in input order.

        Args:
            tenant: whose job it is.
            job_id: its name.
            first: position of the first item wanted.
            count: how many at most; None for all.
            partial: end before the first chunk that has no result; else there must be none.

        Returns:
            Lines of JSON, some at a time; of a sample whose result cannot be read a line that says that it failed.

        Raises:
            UnreachableError: a result is missing, or the queue does not answer.
        """
        keys = JobKeys(tenant, job_id)
        with reaching(), reading():
            starts, items = self.redis.hmget(keys["meta"], "starts", "items")
            bounds = [] if starts is None else [*map(int, json.loads(starts)), int(items)]
        return self._lines(keys, bounds, first, float("inf") if count is None else first + count, partial)

    def _lines(self, keys: JobKeys, bounds: list[int], first: int, end: float, partial: bool) -> Iterator[bytes]:
        """What `results` yields.

        Args:
            keys: of the job.
            bounds: position of each chunk's first sample, and how many samples there are.
            first: position of the first one wanted.
            end: position behind the last one.
            partial: as `results` has it.
        """
        for number in range(max(0, bisect_right(bounds, first) - 1), len(bounds) - 1):
            start = bounds[number]
            if start >= end:
                return
            with reaching():
                data = self.redis.hget(keys["results"], str(number))
            if data is not None:
                numbered = enumerate(unpack_lines(data, start, bounds[number + 1] - start), start)
                yield b"".join(line for at, line in numbered if first <= at < end)
            elif partial:
                return
            else:
                raise UnreachableError(f"job {keys.job_id}: its results have expired")
