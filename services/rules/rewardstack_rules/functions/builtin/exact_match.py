"""`exact_match`: 1 if the response is the reference, but for white space around it; else 0."""

from __future__ import annotations


def exact_match(response: str, reference: str) -> float:
    """Compares two strings, case and inner white space included.

    Args:
        response: what the policy wrote.
        reference: what it should have written.
    """
    return float(response.strip() == reference.strip())
