"""The outcome of a reward function for one sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewardstack.cause import Cause
from rewardstack.errors import RequestError, RewardstackError


class Unscored(RewardstackError):
    """Raised by a reward function for a sample that cannot be scored, such as one with an unreadable reference.

    The sample gets the status `unscored`, so it counts as neither right nor wrong.
    """

    cause = Cause.FUNCTION_UNSCORED


@dataclass(frozen=True, slots=True)
class Outcome:
    """The value of one sample, or the reason why it has none.

    Args:
        value: the reward; None for a sample that cannot be scored.
        reason: text that explains the value or its absence; may be empty.
        parts: the values of the reward's parts, by name; None if it has no parts.
        field: the field of the sample that prevents a score; empty if no field is the cause.
        cause: why the sample has no value; not read if it has one.
    """

    value: float | None
    reason: str = ""
    parts: Mapping[str, float] | None = None
    field: str = ""
    cause: Cause = Cause.FUNCTION_UNSCORED

    @classmethod
    def of_error(cls, error: RequestError) -> Outcome:
        """Return the outcome of a sample with a malformed field."""
        return cls(None, str(error), field=error.field or "", cause=error.cause)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Outcome:
        """Return the outcome that an isolated process sent."""
        cause = Cause.read(fields["cause"]) or Cause.OTHER
        return cls(fields["value"], fields["reason"], fields["parts"], fields["field"], cause)

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as JSON types, the form in which an isolated process sends it."""
        return {
            "status": "unscored" if self.value is None else "ok",
            "value": self.value,
            "reason": self.reason,
            "parts": None if self.parts is None else dict(self.parts),
            "field": self.field,
            "cause": self.cause.value,
        }
