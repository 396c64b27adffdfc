"""What one API key may have in the queue at most; on an open server all clients together."""

from __future__ import annotations

from dataclasses import dataclass

OPEN_JOBS, QUEUE_BYTES = "REWARD_KEY_OPEN_JOBS", "REWARD_KEY_QUEUE_BYTES"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each tenant; None for no limit.

    Args:
        open_jobs: jobs that have not ended.
        queue_bytes: samples and results, compressed as the queue holds them.
    """

    open_jobs: int | None
    queue_bytes: int | None


class LimitReached(Exception):
    """A tenant has as much in the queue as it may.

    Args:
        setting: which limit it is.
        message: names it, and the remedy.
    """

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}")
        self.setting = setting


class NeverFits(LimitReached):
    """A job alone is more than its tenant may have: no waiting helps."""


def too_many(most: int | None) -> LimitReached:
    """The refusal of a further job of a tenant that has `most` open ones."""
    return LimitReached(
        OPEN_JOBS, f"this key has {most} open jobs, and may have no more; wait for one to end, or cancel one"
    )


def too_large(most: int | None) -> LimitReached:
    """The refusal of samples that do not fit into the `most` bytes of a tenant."""
    why = (
        f"this key's samples and results may take {most} bytes of the queue, compressed, and there is no room for these"
    )
    return LimitReached(QUEUE_BYTES, f"{why}; send fewer, cancel jobs, or wait until they end and expire")


def never_fits(most: int) -> NeverFits:
    """The refusal of a job that alone has more than the `most` bytes of its tenant."""
    return NeverFits(
        QUEUE_BYTES,
        f"these samples alone take more than the {most} bytes of the queue, compressed, that a key may have;"
        " send them as several jobs, or raise the limit on the server",
    )
