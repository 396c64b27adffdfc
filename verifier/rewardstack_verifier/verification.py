"""Decide what `question.ask` leaves open. It may take long: call it in a process that can be killed."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.question import DEFAULT, Options, Question, Ruling, ask
from rewardstack_verifier.reading.lexer import is_same_text
from rewardstack_verifier.trail import UNDECIDED, traced


def decide_response(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Ruling:
    """Whether the final answer of a solution equals one of the references.

    It may take any time and memory for what passes the bounds: run it where it can be killed.

    Args:
        solution: what the policy wrote.
        references: right answers, each as it is, in a box, or behind `####`.
        options: what is asked for beside equality.

    Returns:
        The verdict. A reference that is empty or cannot be read never makes an answer wrong.
    """
    asked = ask(solution, references, options)
    return asked if isinstance(asked, Ruling) else decide(asked)


def warm_up() -> None:
    """Load what verdicts need; call it in the process that children are forked from."""
    decide_response(r"\boxed{\sqrt{8}x}", [r"2\sqrt{2}x"])


def decide(question: Question) -> Ruling:
    """Return the ruling on a question; it may take any time and memory for what passes the bounds."""
    return decide_with_trace(question)[0]


def decide_with_trace(question: Question) -> tuple[Ruling, list[str]]:
    """Return the ruling on a question, and the comparisons that were made; as costly as `decide`."""
    verdict, told = traced(lambda: _decided(question))
    undecided = UNDECIDED in told and verdict.right is False
    return verdict._replace(by=UNDECIDED if undecided else ""), told


def _decided(question: Question) -> Ruling:
    # Imported here: it loads libraries that only isolated processes need.
    from rewardstack_verifier.comparison.decimals import tolerating
    from rewardstack_verifier.comparison.simplified import is_simplified
    from rewardstack_verifier.reading.readings import is_readable

    answer, expected, fault = question.answer, question.expected, question.fault
    with tolerating(question.tolerance):
        equal = [one for one in expected if not fault and not refusal(one) and _equal(answer, one)]
    if any(not question.simplified or is_simplified(answer, reference) for reference in equal):
        return Ruling(True)
    if equal:
        return Ruling(False, "not simplified")
    refusals = [refusal(reference) for reference in expected]
    if any(not refused and is_readable(reference) for refused, reference in zip(refusals, expected, strict=True)):
        return Ruling(False, fault or "wrong answer")
    # Nobody knows: wrong is an answer only beside a reference that can be read.
    return Ruling(None, f"the reference is {refusals[0]}" if refusals[0] else "the reference cannot be read")


def _equal(answer: str, reference: str) -> bool:
    """Compare by value where both are read, else as text."""
    from rewardstack_verifier.comparison.compare import compare

    decided = compare(answer, reference)
    return is_same_text(answer, reference) if decided is None else decided
