"""The verdict on a response: `verify`, and on a question that it leaves: `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_rules.mathematics.bounds import refusal
from rewardstack_rules.mathematics.question import Question, Verdict, ask


def verify(solution: str, references: Sequence[str]) -> Verdict:
    """Whether the final answer of a solution equals one of the references.

    It may take any time and memory for what passes the bounds: run it where it can be killed.

    Args:
        solution: what the policy wrote.
        references: right answers, each as it is, in a box, or behind `####`.

    Returns:
        The verdict. A reference that is empty or cannot be read never makes an answer wrong.
    """
    asked = ask(solution, references)
    return asked if isinstance(asked, Verdict) else decide(asked)


def decide(question: Question) -> Verdict:
    """The verdict on a question; as dangerous as `verify`."""
    # Imported here: it loads libraries that only isolated processes need.
    from rewardstack_rules.mathematics.readable import readable

    answer, expected, fault = question
    if not fault and any(not refusal(reference) and _equal(answer, reference) for reference in expected):
        return Verdict(True)
    refusals = [refusal(reference) for reference in expected]
    if any(not refused and readable(reference) for refused, reference in zip(refusals, expected, strict=True)):
        return Verdict(False, fault or "wrong answer")
    # Nobody knows: wrong is an answer only beside a reference that can be read.
    return Verdict(None, f"the reference is {refusals[0]}" if refusals[0] else "the reference cannot be read")


def _equal(answer: str, reference: str) -> bool:
    """By their values, where both are read; else by their texts."""
    from rewardstack_rules.mathematics.comparison.compare import compare
    from rewardstack_rules.mathematics.equal import equal

    decided = compare(answer, reference)
    return equal(answer, reference) if decided is None else decided
