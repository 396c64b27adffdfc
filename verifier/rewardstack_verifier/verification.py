"""Compare an answer with its references (`decide`). This can be slow: call it in a process that can be killed."""

from __future__ import annotations

from collections.abc import Sequence

from rewardstack_verifier.bounds import refusal
from rewardstack_verifier.question import DEFAULT, Options, Question, Ruling, ask
from rewardstack_verifier.reading.lexer import is_same_text
from rewardstack_verifier.tracing import UNDECIDED, with_trace


def decide_response(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Ruling:
    """Return whether the final answer of a response equals one of the references.

    This can take unlimited time and memory: call it in a process that can be killed.

    Args:
        solution: text of the response.
        references: right answers, each as plain text, in `\\boxed`, or after `####`.
        options: options of the verification.

    Returns:
        The verdict. If no reference can be parsed, `right` is True for equal texts, else None.
    """
    question = ask(solution, references, options)
    return question if isinstance(question, Ruling) else decide(question)


def warm_up() -> None:
    """Load all libraries and tables; call this in a parent process, before it forks workers."""
    decide_response(r"\boxed{\sqrt{8}x}", [r"2\sqrt{2}x"])


def decide(question: Question) -> Ruling:
    """Return the ruling on a question; this can take unlimited time and memory."""
    return decide_with_trace(question)[0]


def decide_with_trace(question: Question) -> tuple[Ruling, list[str]]:
    """Return the ruling on a question, and the steps that were traced, such as `values`."""
    verdict, steps = with_trace(lambda: _decide(question))
    undecided = UNDECIDED in steps and verdict.right is False
    return verdict._replace(by=UNDECIDED if undecided else ""), steps


def _decide(question: Question) -> Ruling:
    # Imported here, so that only processes that compare by value load the Flint library.
    from rewardstack_verifier.comparison.decimals import use_tolerance
    from rewardstack_verifier.comparison.simplification import is_simplified
    from rewardstack_verifier.reading.readings import is_readable

    answer, expected, fault = question.answer, question.expected, question.fault
    with use_tolerance(question.tolerance):
        equal = [one for one in expected if not fault and not refusal(one) and _equal(answer, one)]
    if any(not question.simplified or is_simplified(answer, reference) for reference in equal):
        return Ruling(True)
    if equal:
        return Ruling(False, "not simplified")
    refusals = [refusal(reference) for reference in expected]
    if any(not refused and is_readable(reference) for refused, reference in zip(refusals, expected, strict=True)):
        return Ruling(False, fault or "wrong answer")
    # No reference can be parsed, so there is no verdict.
    if len(expected) > 1:
        return Ruling(None, f"no reference can be parsed{'; the first: ' if refusals[0] else ''}{refusals[0]}")
    return Ruling(None, f"the reference cannot be parsed{': ' if refusals[0] else ''}{refusals[0]}")


def _equal(answer: str, reference: str) -> bool:
    """Compare answer and reference by value; if that is impossible, as text."""
    from rewardstack_verifier.comparison.compare import compare

    is_equal = compare(answer, reference)
    return is_same_text(answer, reference) if is_equal is None else is_equal
