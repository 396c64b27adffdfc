"""Keys of jobs in the queue's Redis."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import blake2b

PREFIX = "rewardstack:jobs"
ENDED = "ended"
"""Last part of the Redis key for the list of a tenant's ended jobs, the most recently ended first."""
OPEN = f"{PREFIX}:open"
"""A hash from job ids to tenants, for the jobs that have not ended."""
STARTED = f"{PREFIX}:started"
"""A set of the ids of open jobs with at least one started chunk."""
TURNS = f"{PREFIX}:turns"
"""A hash from tenants to the number of the last turn that each had, for tenants with open jobs."""
LAST_TURN = f"{PREFIX}:turn"
"""The number of the last turn."""
COUNTS = f"{PREFIX}:counts"
"""A hash of counters over all jobs and workers."""
SWEEP = f"{PREFIX}:sweep"
"""A key that expires after `sweeper.INTERVAL` seconds. Only the worker that sets it searches for lost chunks."""
WORKERS = f"{PREFIX}:workers"
"""A sorted set of workers, by the time of their last heartbeat."""
SILENCE = 30.0
"""Seconds without a heartbeat after which a worker counts as dead."""


def new_job_id() -> str:
    """Return an unguessable job id in hexadecimal. RQ's ids contain it, and allow only letters, digits, `_` and `-`."""
    return secrets.token_hex(16)


def idempotency_key(tenant: str, key: str) -> str:
    """Return the Redis key for an idempotency key. Keys of different tenants do not collide."""
    return f"{PREFIX}:{tenant}:key:{blake2b(key.encode(), digest_size=16).hexdigest()}"


@dataclass(frozen=True, slots=True)
class JobKeys:
    """The Redis keys of one job, which contain its tenant.

    Args:
        tenant: owner of the job; empty on a server without API keys.
        job_id: the job's id.
    """

    tenant: str
    job_id: str

    def __getitem__(self, part: str) -> str:
        return f"{PREFIX}:{self.tenant}:job:{self.job_id}:{part}"

    def script_keys(self) -> list[str]:
        """Return the keys that every script in `scripts` gets, in order."""
        parts = ("meta", "input", "partial", "results", "due", "tries")
        of_tenant = (f"{PREFIX}:{self.tenant}:{name}" for name in ("bytes", "held", ENDED))
        return [*(self[part] for part in parts), OPEN, STARTED, COUNTS, *of_tenant]
