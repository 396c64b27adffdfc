"""How a job stands."""

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
"""Fields of a job's `meta` that `read_state` is given, in order."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job's progress.

    Args:
        job_id: its name.
        status: `queued` until a chunk is begun, then `running`; `failed` where the infrastructure failed every item,
            or where one option is wrong in every one of several.
        items: how many it has.
        statuses: how many of them are scored, by how it ended.
        cached: how many of these were read from the cache.
        submitted: when, in seconds since 1970.
        started: when its first chunk was begun; None before.
        ended: when it finished, failed or was canceled; None before.
        ttl: seconds that it is kept after its end.
        error: which option is wrong in every item, and how; empty where none is.
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
        """How many items are scored."""
        return sum(self.statuses.values())

    @property
    def expires(self) -> float | None:
        """When the job is forgotten, in seconds since 1970; None while it is not known."""
        return None if self.ended is None else self.ended + self.ttl


def read_state(job_id: str, values: Sequence[bytes | None]) -> JobState | None:
    """The state that `FIELDS` have; None where there is no such job.

    Raises:
        LookupError, ValueError: the fields hold something else.
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
    """Seconds since 1970 that are a time."""
    seconds = float(text)
    datetime.fromtimestamp(seconds, timezone.utc)
    return seconds


def _status(state: str, started: float | None) -> Status:
    for status in ("finished", "failed", "canceled"):
        if state == status:
            return status
    return "queued" if started is None else "running"
