"""`exact_match`: 1 if the response equals the reference except for surrounding white space; else 0."""

from __future__ import annotations

from rewardstack_rules.functions.outcome import Outcome


def exact_match(response: str, reference: str) -> Outcome:
    """Compare two strings without their surrounding white space. Case and inner white space count.

    Args:
        response: the policy's text.
        reference: the expected text.
    """
    if response.strip() == reference.strip():
        return Outcome(1.0)
    return Outcome(0.0, "wrong answer: the response is not the reference")
