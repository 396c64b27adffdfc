"""`math`: 1 for a correct final answer to a math problem, else 0."""

from __future__ import annotations

from rewardstack.cause import Cause
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_verifier.question import Ruling


def _outcome(response: str, verdict: Ruling) -> Outcome:
    if verdict.right is None:
        return Outcome(None, verdict.reason, cause=Cause.BAD_REFERENCE)
    return Outcome(float(verdict.right), verdict.reason)


VERIFIER = Verifier(select_text=lambda response: response, make_outcome=_outcome)
