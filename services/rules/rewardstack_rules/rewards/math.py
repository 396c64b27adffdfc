"""`math`: 1 for a right answer to a problem of mathematics, wherever in the response it stands; else 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack_rules.outcome import Outcome


def math(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    """Whether the response's answer equals one of the references.

    Args:
        response: what the policy wrote.
        references: right answers; without one that can be read the sample is unscored.
        extra: not read.
    """
    # Imported here: only the isolated processes, which call this, need the libraries behind it.
    from rewardstack_rules.mathematics import verify

    verdict = verify(response, references)
    return Outcome(None if verdict.right is None else float(verdict.right), verdict.reason)
