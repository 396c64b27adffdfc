"""Limits of one API key in the queue; on an open server, of all clients together."""

from __future__ import annotations

from dataclasses import dataclass

OPEN_JOBS, QUEUE_BYTES = "REWARD_KEY_OPEN_JOBS", "REWARD_KEY_QUEUE_BYTES"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each tenant; None for no limit.

    Args:
        open_jobs: maximum number of jobs that have not ended.
        queue_bytes: maximum size of samples and results in the queue, in bytes after compression.
    """

    open_jobs: int | None
    queue_bytes: int | None


class LimitReached(Exception):
    """A tenant has reached a limit of the queue.

    Args:
        setting: name of the setting for the limit.
        message: the limit and the remedy.
    """

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting


class NeverFits(LimitReached):
    """A single job exceeds the limit of its tenant, so waiting does not help."""


def too_many(most: int | None) -> LimitReached:
    """Return the error for a job of a tenant that already has `most` open jobs."""
    return LimitReached(
        OPEN_JOBS, f"this key has {most} open jobs, which is the limit; wait for one to end, or cancel one"
    )


def too_large(most: int | None) -> LimitReached:
    """Return the error for samples that do not fit into what is left of a tenant's `most` bytes."""
    why = (
        f"this key's samples and results may take {most} bytes of the queue, compressed, and there is no room for these"
    )
    return LimitReached(QUEUE_BYTES, f"{why}; send fewer, cancel jobs, or wait until they end and expire")


def never_fits(most: int) -> NeverFits:
    """Return the error for a job that alone exceeds its tenant's `most` bytes."""
    return NeverFits(
        QUEUE_BYTES,
        f"these samples alone take more than the {most} bytes of the queue, compressed, that a key may have;"
        " send them as several jobs, or raise the limit on the server",
    )
