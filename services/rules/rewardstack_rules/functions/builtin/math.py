"""`math`: 1 for a right answer to a problem of mathematics, wherever in the response it stands; else 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_rules.mathematics import Verdict, verify


def math(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
    """Whether the response's answer equals one of the references.

    A server mostly asks by `VERIFIER`, below; this evaluates what is too long for that, or where that had a fault.

    Args:
        response: what the policy wrote.
        references: right answers; without one that can be read the sample is unscored.
        extra: not read.
    """
    return _value(response, verify(response, references))


def _value(response: str, verdict: Verdict) -> Outcome:
    return Outcome(None if verdict.right is None else float(verdict.right), verdict.reason)


VERIFIER = Verifier(read=str, value=_value)
