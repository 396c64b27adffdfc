"""The names under which jobs stand in the queue's Redis."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import blake2b

PREFIX = "rewardstack:jobs"
OPEN = f"{PREFIX}:open"
"""A hash: jobs that are neither finished nor canceled, each with its tenant."""
STARTED = f"{PREFIX}:started"
"""A set: those of them of which a chunk was begun."""
COUNTS = f"{PREFIX}:counts"
"""A hash: what has happened so far, over all jobs and workers."""
SWEEP = f"{PREFIX}:sweep"
"""Held by the worker that looks for lost chunks."""
WORKERS = f"{PREFIX}:workers"
"""A sorted set: workers by when they last said that they live."""
SILENCE = 30.0
"""Seconds after which a worker of which nothing is heard counts as gone."""


def new_job_id() -> str:
    """A name that cannot be guessed; RQ takes letters, digits, `_` and `-` only."""
    return secrets.token_hex(16)


def idempotency_key(tenant: str, given: str) -> str:
    """Where the job stands that a tenant submitted under an idempotency key; other tenants' do not collide."""
    return f"{PREFIX}:{tenant}:key:{blake2b(given.encode(), digest_size=16).hexdigest()}"


@dataclass(frozen=True, slots=True)
class JobKeys:
    """The keys of one job; a tenant's are found under its name alone.

    Args:
        tenant: of the job; empty on an open server.
        job_id: its name.
    """

    tenant: str
    job_id: str

    def __getitem__(self, part: str) -> str:
        return f"{PREFIX}:{self.tenant}:job:{self.job_id}:{part}"

    def of_scripts(self) -> list[str]:
        """What every script of `scripts` is given, in order."""
        parts = ("meta", "input", "partial", "results", "due", "tries")
        of_tenant = (f"{PREFIX}:{self.tenant}:{name}" for name in ("bytes", "held"))
        return [*(self[part] for part in parts), OPEN, STARTED, COUNTS, *of_tenant]
