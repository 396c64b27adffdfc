"""`exact_match`: 1 if the response equals the reference except for surrounding white space; else 0."""

from __future__ import annotations

from rewardstack_rules.functions.outcome import Outcome


def exact_match(response: str, reference: str) -> Outcome:
    """Compare two strings. Ignore surrounding white space, but not case or other white space.

    Args:
        response: the policy's text.
        reference: the expected text.
    """
    if response.strip() == reference.strip():
        return Outcome(1.0)
    return Outcome(0.0, "wrong answer: the response differs from the reference")
