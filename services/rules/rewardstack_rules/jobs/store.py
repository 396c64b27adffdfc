"""The reward server's operations on jobs: submit, look up, stream results and cancel."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import count as count_from
from itertools import takewhile

from rewardstack.core.groups import GroupOf, no_group
from rewardstack.errors import OverloadError, UnreachableError
from rewardstack.score import Request
from rewardstack_rules.jobs import audit, scripts
from rewardstack_rules.jobs.codec import result_line, unpack_lines, unpack_partial
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.durability import confirm_written
from rewardstack_rules.jobs.keys import ENDED, OPEN, PREFIX, JobKeys, idempotency_key, new_job_id
from rewardstack_rules.jobs.limits import too_many_jobs
from rewardstack_rules.jobs.link import connect, parse_errors, redis_errors
from rewardstack_rules.jobs.state import FIELDS, JobState, read_state
from rewardstack_rules.jobs.submission import Submission
from rewardstack_rules.settings import Settings

GRACE = 30.0
"""Seconds after a job's submission at which a chunk that is neither queued nor started counts as lost."""

EXPIRED = "the job's samples expired during the upload; submit the job again, with fewer samples or a faster upload"
KEY_CONFLICT = "the queue has an unreadable entry for this Idempotency-Key; send another key"
WITHDRAWN = "the queue could not write the job of this Idempotency-Key to its disk; submit the job again"
TOO_MANY = b"too many"
KNOWN = re.compile(rb"^([0-9a-f]{32}):([0-9a-f]{32})\Z")
"""Matches the value of an idempotency key in Redis: the job's id and the digest of its samples."""


class Conflict(Exception):
    """Raised if an idempotency key was used before with other samples."""


class JobStore:
    """The jobs of one queue; thread-safe. Methods raise `ServiceError` if the queue fails.

    Args:
        settings: the server's settings, including its queue, chunk size, TTL of results, and limits of tenants.
        group_of: returns the group of a sample; the members of a group, which must be consecutive, are in one chunk.
    """

    def __init__(self, settings: Settings, group_of: GroupOf[Request] = no_group) -> None:
        self.redis = connect(settings.queue_url)
        self._delivery = Delivery(self.redis)
        self._chunk_size = settings.job_chunk_size
        self._group_of = group_of
        self._ttl = settings.job_ttl
        self._limits = settings.job_limits
        self._publish = self.redis.register_script(scripts.PUBLISH)
        self._confirm = self.redis.register_script(scripts.CONFIRM)
        self._withdraw = self.redis.register_script(scripts.WITHDRAW)
        self._cancel = self.redis.register_script(scripts.CANCEL)

    def submit(self, requests: Iterable[Request], tenant: str, key: str = "") -> str:
        """Submit a job. Return once it is on the queue's disk.

        Args:
            requests: the job's samples, which may still be arriving.
            tenant: owner of the job.
            key: idempotency key of the caller; empty for none.

        Returns:
            The job's id, or the id of the earlier job if `key` was used before with the same samples.

        Raises:
            Conflict: `key` was used before with other samples.
            LimitReached: the tenant has reached a limit; `JobTooLarge` if this job alone exceeds the limit.
            RequestError: a group is too large, or its members are not consecutive and would be in different chunks; no
                job is created.
            Exception: anything that iterating over `requests` raises; no job is created.
        """
        keys, redis_key = JobKeys(tenant, new_job_id()), idempotency_key(tenant, key) if key else ""
        with redis_errors():
            is_known = bool(redis_key and self.redis.exists(redis_key))
            submission = Submission(self.redis, keys, self._chunk_size, self._limits.queue_bytes, self._group_of)
            if is_known:  # an earlier job has stored and counted the samples, so compare only their digest
                submission.read(requests)
            else:
                self._check_open_jobs(tenant)
                submission.write(requests)
            job_id, digest = self._publish_job(keys, submission, redis_key)
            if job_id != keys.job_id:
                submission.discard()
                if digest != submission.digest:
                    raise Conflict
                self._confirm_durable(JobKeys(tenant, job_id))  # the earlier request may still wait for the disk
                return job_id
            self._confirm_or_withdraw(keys)
            sources = audit.most_common_sources(submission.sources)
            audit.log_event("submitted", keys, items=submission.items, bytes=submission.bytes, sources=sources)
            self._delivery.send((job_id, number) for number in range(len(submission.starts)))
        return job_id

    def _check_open_jobs(self, tenant: str) -> None:
        """Refuse a job before its samples are stored if the tenant has too many open jobs."""
        limit = self._limits.open_jobs
        if limit is not None and self.redis.hvals(OPEN).count(tenant.encode()) >= limit:
            raise too_many_jobs(limit)

    def _publish_job(self, keys: JobKeys, submission: Submission, key: str) -> tuple[str, str]:
        """Publish a job; return its id and the digest of its samples, or those of an earlier job with the same key.

        Args:
            keys: keys of the job.
            submission: the job's samples. If `key` is known, only the earlier job's samples are stored.
            key: Redis key of the idempotency key; empty for none.

        Raises:
            LimitReached: the tenant has too many open jobs.
            OverloadError: the samples, or the earlier job with the same key, have expired.
            UnreachableError: the value of `key` in Redis is malformed.
        """
        starts = json.dumps(submission.starts)
        counts = (submission.items, submission.chunks, starts, self._ttl, GRACE, self._limits.open_jobs or "")
        found = self._publish(keys.script_keys(), [keys.job_id, keys.tenant, key, submission.digest, *counts])
        known = KNOWN.match(found)
        if known is None:
            # Discard the samples only after a reply: without a reply, the job may exist and need its samples.
            submission.discard()
            if found == TOO_MANY:
                raise too_many_jobs(self._limits.open_jobs)
            raise OverloadError(EXPIRED) if not found else UnreachableError(KEY_CONFLICT)
        return known[1].decode(), known[2].decode()

    def _confirm_or_withdraw(self, keys: JobKeys) -> None:
        """Confirm an own job; if that fails, withdraw it. Raises as `_confirm_durable`."""
        try:
            self._confirm_durable(keys)
        except BaseException:
            self._withdraw(keys.script_keys(), [keys.job_id])
            raise

    def _confirm_durable(self, keys: JobKeys) -> None:
        """Wait until a published job is on the queue's disk.

        Raises:
            UnreachableError: the queue did not confirm it, or the request that published the job has withdrawn it.
        """
        confirm_written(self.redis)
        if not self._confirm(keys.script_keys(), [keys.job_id]):
            raise UnreachableError(WITHDRAWN)

    def state(self, tenant: str, job_id: str) -> JobState | None:
        """Return the state of a job; None if the tenant has no such job."""
        with redis_errors(), parse_errors():
            return read_state(job_id, self.redis.hmget(JobKeys(tenant, job_id)["meta"], FIELDS))

    def recent_jobs(self, tenant: str, limit: int) -> list[JobState]:
        """Return the states of a tenant's open jobs, then of its recently ended jobs.

        Within each of the two groups, jobs are sorted by the time of submission, the latest first.

        Args:
            tenant: owner of the jobs.
            limit: maximum number of jobs.
        """
        with redis_errors(), parse_errors():
            names = [job.decode() for job, owner in self.redis.hgetall(OPEN).items() if owner == tenant.encode()]
            ended = [job.decode() for job in self.redis.lrange(f"{PREFIX}:{tenant}:{ENDED}", 0, -1)]
            names += [name for name in dict.fromkeys(ended) if name not in names]
            pipe = self.redis.pipeline(transaction=False)
            for name in names:
                pipe.hmget(JobKeys(tenant, name)["meta"], FIELDS)
            states = [read_state(name, values) for name, values in zip(names, pipe.execute(), strict=True)]
        known = [state for state in states if state is not None]
        return sorted(known, key=lambda state: (state.ended is not None, -state.submitted))[:limit]

    def cancel(self, tenant: str, job_id: str) -> None:
        """Cancel a job unless it has ended. Committed results stay; no further results are stored."""
        keys = JobKeys(tenant, job_id)
        with redis_errors():
            ended = self._cancel(keys.script_keys(), [job_id])
        if ended:
            audit.log_event("canceled", keys)

    def results(
        self, tenant: str, job_id: str, first: int = 0, count: int | None = None, *, partial: bool = False
    ) -> Iterator[bytes]:
        """Return the results in input order.

        Args:
            tenant: owner of the job.
            job_id: the job's id.
            first: position of the first sample to return.
            count: maximum number of samples; None for all.
            partial: whether to stop at the first sample without a result, instead of raising.

        Returns:
            Blocks of JSON lines, one block per chunk. An unreadable result becomes a line with the status `failed`.

        Raises:
            UnreachableError: the queue does not answer, or a result is missing and `partial` is False.
        """
        keys = JobKeys(tenant, job_id)
        with redis_errors(), parse_errors():
            starts, items = self.redis.hmget(keys["meta"], "starts", "items")
            bounds = [] if starts is None else [*map(int, json.loads(starts)), int(items)]
        return self._lines(keys, bounds, first, float("inf") if count is None else first + count, partial)

    def _lines(self, keys: JobKeys, bounds: list[int], first: int, end: float, partial: bool) -> Iterator[bytes]:
        """Yield the lines of `results`.

        Args:
            keys: keys of the job.
            bounds: position of each chunk's first sample, then the job's number of samples.
            first: position of the first sample to return.
            end: position after the last sample to return.
            partial: whether to stop at the first sample without a result, instead of raising.
        """
        for number in range(max(0, bisect_right(bounds, first) - 1), len(bounds) - 1):
            start = bounds[number]
            if start >= end:
                return
            with redis_errors():
                data = self.redis.hget(keys["results"], str(number))
            if data is not None:
                numbered = enumerate(unpack_lines(data, start, bounds[number + 1] - start), start)
                yield b"".join(line for at, line in numbered if first <= at < end)
            elif partial:
                yield self._postponed_lines(keys, number, start, first, end)
                return
            else:
                raise UnreachableError(f"job {keys.job_id}: its results have expired")

    def _postponed_lines(self, keys: JobKeys, number: int, start: int, first: int, end: float) -> bytes:
        """Return the lines of a chunk that is retried, up to its first sample without a result."""
        with redis_errors():
            replies = unpack_partial(self.redis.hget(keys["partial"], str(number)) or b"")
        known = takewhile(lambda at: at < end and at - start in replies, count_from(max(first, start)))
        return b"".join(result_line(at, replies[at - start]) for at in known)
