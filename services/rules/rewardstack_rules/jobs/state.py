"""The status and progress of a job, and how to read them from Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal

from rewardstack.score import STATUSES

Status = Literal["queued", "running", "finished", "failed", "canceled"]

JOB_STATUSES: tuple[Status, ...] = ("queued", "running", "finished", "failed", "canceled")
COUNTED = (*STATUSES, "cached")
FIELDS = ("items", "state", "submitted", "started", "ended", "ttl", "error", *COUNTED)
"""Fields of a job's hash `meta` that `read_state` reads, in order."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job's status and progress. An item is a sample of the job. Times are in seconds since 1970.

    Args:
        job_id: the job's id.
        status: `queued` until a chunk is started, then `running`, finally `finished`, `canceled` or `failed`. A job is
            `failed` if every item is `failed`, or if it has several items and the same option is invalid in all.
        items: number of items.
        statuses: number of scored items, by status.
        cached: number of scored items whose scores were read from the cache.
        submitted: time of the submission.
        started: time when the first chunk was started; None before that.
        ended: time when the job finished, failed or was canceled; None if it has not ended.
        ttl: seconds for which the job is kept after its end.
        error: if the same option is invalid in all items, the reason; else empty.
    """

    job_id: str
    status: Status
    items: int
    statuses: dict[str, int]
    cached: int
    submitted: float
    started: float | None
    ended: float | None
    ttl: int
    error: str

    @property
    def done(self) -> int:
        """Number of scored items."""
        return sum(self.statuses.values())

    @property
    def expires(self) -> float | None:
        """Time when the job expires, in seconds since 1970; None before its end."""
        return None if self.ended is None else self.ended + self.ttl


def read_state(job_id: str, values: Sequence[bytes | None]) -> JobState | None:
    """Return the state of a job from the values of `FIELDS`; None if there is no such job.

    Raises:
        LookupError, ValueError, OverflowError: the values are invalid.
    """
    fields = {name: value.decode() for name, value in zip(FIELDS, values, strict=True) if value is not None}
    if "items" not in fields:
        return None
    started, ended = (_time(fields[name]) if name in fields else None for name in ("started", "ended"))
    return JobState(
        job_id,
        _status(fields["state"], started),
        int(fields["items"]),
        {status: int(fields.get(status, 0)) for status in STATUSES},
        int(fields.get("cached", 0)),
        _time(fields["submitted"]),
        started,
        ended,
        int(fields["ttl"]),
        fields.get("error", ""),
    )


def _time(text: str) -> float:
    """Parse seconds since 1970; raise ValueError or OverflowError if they are not a valid time."""
    seconds = float(text)
    datetime.fromtimestamp(seconds, timezone.utc)
    return seconds


def _status(state: str, started: float | None) -> Status:
    for status in ("finished", "failed", "canceled"):
        if state == status:
            return status
    return "queued" if started is None else "running"
