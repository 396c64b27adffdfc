"""Limits of one API key in the queue. On a server without keys, they apply to all clients together."""

from __future__ import annotations

from dataclasses import dataclass

OPEN_JOBS, QUEUE_BYTES = "REWARD_KEY_OPEN_JOBS", "REWARD_KEY_QUEUE_BYTES"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each tenant (the owner of an API key); None for no limit.

    Args:
        open_jobs: maximum number of jobs that have not ended.
        queue_bytes: maximum size of samples and results in the queue, in bytes after compression.
    """

    open_jobs: int | None
    queue_bytes: int | None


class LimitReached(Exception):
    """Raised if a tenant has reached a limit of the queue.

    Args:
        setting: name of the setting for the limit.
        message: the limit and the remedy.
    """

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting


class JobTooLarge(LimitReached):
    """Raised if a single job exceeds the limit of its tenant, so that waiting does not help."""


def too_many_jobs(limit: int | None) -> LimitReached:
    """Return the error for a tenant that already has `limit` open jobs."""
    return LimitReached(
        OPEN_JOBS, f"this key has {limit} open jobs, which is the limit; wait for one to end, or cancel one"
    )


def too_many_bytes(limit: int | None) -> LimitReached:
    """Return the error for samples with which a tenant would exceed its limit of bytes."""
    why = f"with these samples, this key would have more than {limit} compressed bytes in the queue, which is the limit"
    return LimitReached(QUEUE_BYTES, f"{why}; send fewer samples, cancel jobs, or wait until jobs end and expire")


def job_too_large(limit: int) -> JobTooLarge:
    """Return the error for a job that alone exceeds its tenant's limit of bytes."""
    return JobTooLarge(
        QUEUE_BYTES,
        f"this job alone has more than {limit} compressed bytes of samples, which is the limit of a key in the queue; "
        "send the samples as several jobs, or raise the limit on the server",
    )
