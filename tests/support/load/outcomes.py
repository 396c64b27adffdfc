"""What became of each sample of the load, and what is wrong with that; written and read as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rewardstack import Request

RAISED = "raised"
"""The status of a sample whose call ended with an exception: it is lost."""


@dataclass(frozen=True, slots=True)
class Known:
    """A sample whose right score is known in advance.

    Args:
        request: the sample.
        value: its right score.
        tolerance: how far off a right value may be.
    """

    request: Request
    value: float
    tolerance: float = 0.0

    def is_right(self, value: float | None) -> bool:
        """Whether a score has this sample's value."""
        return value is not None and abs(value - self.value) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one sample that was sent once.

    Args:
        lane: by which it went.
        index: of the sample among those of its lane.
        begun: when it was sent, on the machine's monotonic clock.
        ended: when its score came.
        status: of the score, or `RAISED`.
        value: of the score.
        cached: whether it was read from a cache.
        reason: of the score, or of the exception.
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
        """Itself as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_line(cls, line: str | bytes) -> Outcome:
        """The outcome of such a line."""
        return cls(**json.loads(line))

    def is_wrong(self, known: Sequence[Known]) -> bool:
        """Whether it is a score, and another one than the sample's.

        Args:
            known: the samples of its lane.
        """
        return self.status == "ok" and not known[self.index].is_right(self.value)
