"""What a reward function makes of one sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.errors import RewardstackError


class Unscored(RewardstackError):
    """Raised by a reward function for a sample that nobody could score, such as one whose reference is unreadable.

    The sample is then `unscored`, which is neither right nor wrong.
    """


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of one sample, or why it has none.

    Args:
        value: the reward; None for a sample that cannot be scored.
        reason: why, in words; empty where the value says it all.
        parts: the values of the reward's parts, by name.
        field: of `extra_info` that is to blame where there is no value; empty where none is.
    """

    value: float | None
    reason: str = ""
    parts: Mapping[str, float] | None = None
    field: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The outcome in plain JSON types, as it leaves an isolated process."""
        return {
            "status": "unscored" if self.value is None else "ok",
            "value": self.value,
            "reason": self.reason,
            "parts": None if self.parts is None else dict(self.parts),
            "field": self.field,
        }
