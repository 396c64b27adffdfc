"""The verdict on a response: `verify`, and on a question that it leaves: `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.question import DEFAULT, Options, Question, Verdict, ask
from rewardstack_verifier.reading.lexer import is_same_text
from rewardstack_verifier.trail import UNDECIDED, told_by


def verify(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Verdict:
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
    return asked if isinstance(asked, Verdict) else decide(asked)


def warm_up() -> None:
    """Load what verdicts need; call it in the process that children are forked from."""
    verify(r"\boxed{\sqrt{8}x}", [r"2\sqrt{2}x"])


def decide(question: Question) -> Verdict:
    """The verdict on a question; as dangerous as `verify`."""
    return decide_aloud(question)[0]


def decide_aloud(question: Question) -> tuple[Verdict, list[str]]:
    """The verdict on a question, and the comparisons that were made; as dangerous as `verify`."""
    verdict, told = told_by(lambda: _decided(question))
    undecided = UNDECIDED in told and verdict.right is False
    return verdict._replace(by=UNDECIDED if undecided else ""), told


def _decided(question: Question) -> Verdict:
    # Imported here: it loads libraries that only isolated processes need.
    from rewardstack_verifier.comparison.compare import is_readable
    from rewardstack_verifier.comparison.decimals import tolerating
    from rewardstack_verifier.comparison.simplified import is_simplified

    answer, expected, fault = question.answer, question.expected, question.fault
    with tolerating(question.tolerance):
        equal = [one for one in expected if not fault and not refusal(one) and _equal(answer, one)]
    if any(not question.simplified or is_simplified(answer, reference) for reference in equal):
        return Verdict(True)
    if equal:
        return Verdict(False, "not simplified")
    refusals = [refusal(reference) for reference in expected]
    if any(not refused and is_readable(reference) for refused, reference in zip(refusals, expected, strict=True)):
        return Verdict(False, fault or "wrong answer")
    # Nobody knows: wrong is an answer only beside a reference that can be read.
    return Verdict(None, f"the reference is {refusals[0]}" if refusals[0] else "the reference cannot be read")


def _equal(answer: str, reference: str) -> bool:
    """Compare by value where both are read, else as text."""
    from rewardstack_verifier.comparison.compare import compare

    decided = compare(answer, reference)
    return is_same_text(answer, reference) if decided is None else decided
