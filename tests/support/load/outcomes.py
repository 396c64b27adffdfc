"""Record what became of each sample of the load as a line of JSON, and check it against the known score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rewardstack import Request

RAISED = "raised"
"""Status of a sample whose call raised an exception, so that the sample is lost."""


@dataclass(frozen=True, slots=True)
class Known:
    """A sample with a known right score.

    Args:
        request: the sample.
        value: its right score.
        tolerance: maximum distance of a right value from it.
    """

    request: Request
    value: float
    tolerance: float = 0.0

    def is_right(self, value: float | None) -> bool:
        """Return whether a score's value is right."""
        return value is not None and abs(value - self.value) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a sample, each time it was sent.

    Args:
        lane: name of its lane.
        index: index of the sample in its lane.
        begun: when it was sent, on the machine's monotonic clock.
        ended: when its score arrived or the call failed.
        status: status of the score, or `RAISED`.
        value: value of the score.
        cached: whether the score was read from a cache.
        reason: reason of the score, or the exception.
    """

    lane: str
    index: int
    begun: float
    ended: float
    status: str
    value: float | None = None
    cached: bool = False
    reason: str = ""

    def to_line(self) -> str:
        """Return the outcome as a line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str | bytes) -> Outcome:
        """Return the outcome in a line from `to_line`."""
        return cls(**json.loads(line))

    def is_wrong(self, known: Sequence[Known]) -> bool:
        """Return whether the status is `ok`, but the value is not right.

        Args:
            known: samples of its lane.
        """
        return self.status == "ok" and not known[self.index].is_right(self.value)
