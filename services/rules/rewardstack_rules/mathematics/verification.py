"""The verdict on a response: `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewardstack_rules.mathematics.bounds import MAX_RESPONSE, refusal
from rewardstack_rules.mathematics.equal import equal, readable
from rewardstack_rules.mathematics.extract import boxed, extract_answer


class Verdict(NamedTuple):
    """What became of a response.

    Args:
        right: whether it is right; None where the references do not allow to say so.
        reason: why it is wrong or has no verdict; empty where it is right.
    """

    right: bool | None
    reason: str = ""


def verify(solution: str, references: Sequence[str]) -> Verdict:
    """Whether the final answer of a solution equals one of the references.

    It may take any time and memory for what passes the bounds: run it where it can be killed.

    Args:
        solution: what the policy wrote.
        references: right answers, each as it is, in a box, or behind `####`.

    Returns:
        The verdict. A reference that is empty or cannot be read never makes an answer wrong.
    """
    expected = [answer for answer in map(_reference_answer, references) if answer]
    if not expected:
        return Verdict(None, "the reference is empty")
    if len(solution) > MAX_RESPONSE:
        return _wrong(expected, "response too long")
    answer = extract_answer(solution)
    if answer is None:
        return _wrong(expected, "no answer")
    if answer in expected:
        return Verdict(True)
    refused = refusal(answer)
    if refused:
        return _wrong(expected, f"answer {refused}")
    if any(not refusal(reference) and equal(answer, reference) for reference in expected):
        return Verdict(True)
    return _wrong(expected, "wrong answer")


def _reference_answer(reference: str) -> str:
    """The answer in a reference, which may be a whole solution."""
    return boxed(reference) or reference.rpartition("####")[2].strip()


def _wrong(expected: Sequence[str], reason: str) -> Verdict:
    """Wrong, if there is a reference that can be read; else nobody knows."""
    refusals = [refusal(reference) for reference in expected]
    if any(not refused and readable(reference) for refused, reference in zip(refusals, expected, strict=True)):
        return Verdict(False, reason)
    return Verdict(None, f"the reference is {refusals[0]}" if refusals[0] else "the reference cannot be read")
