"""What a response leaves to be decided: `ask`. It reads text alone, in linear time, and loads no library of algebra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rewardstack_rules.mathematics.bounds import MAX_RESPONSE, refusal
from rewardstack_rules.mathematics.extract import extract_answer, reference_answer
from rewardstack_rules.mathematics.reading.lexer import is_same_text

SHORT = 200
"""Characters of a reference whose answer is remembered: several responses are compared with one."""
REMEMBERED = 2048
"""Such references."""


class Verdict(NamedTuple):
    """What became of a response.

    Args:
        right: whether it is right; None where the references do not allow to say so.
        reason: why it is wrong or has no verdict; empty where it is right.
    """

    right: bool | None
    reason: str = ""


class Question(NamedTuple):
    """Whether an answer equals one of the references; all that a verdict depends on.

    Args:
        answer: as it stands in the response, within the bounds; empty where there is none that may be compared.
        expected: the answers in the references, at least one.
        fault: why the answer cannot be right, so that the references alone decide the verdict; empty where it can.
    """

    answer: str
    expected: tuple[str, ...]
    fault: str = ""


def ask(solution: str, references: Sequence[str]) -> Question | Verdict:
    """What is to be decided about a response, or the verdict where the text alone decides it.

    Args:
        solution: what the policy wrote.
        references: right answers, each as it is, in a box, or behind `####`.
    """
    expected = tuple(answer for answer in map(_expected, references) if answer)
    if not expected:
        return Verdict(None, "the reference is empty")
    if len(solution) > MAX_RESPONSE:
        return Question("", expected, "response too long")
    answer = extract_answer(solution)
    if answer is None:
        return Question("", expected, "no answer")
    if answer in expected:
        return Verdict(True)
    refused = refusal(answer)
    if not refused:
        return Question(answer, expected)
    same = any(is_same_text(answer, reference) for reference in expected)
    return Verdict(True) if same else Question("", expected, f"answer {refused}")


def _expected(reference: str) -> str:
    return _remembered(reference) if len(reference) <= SHORT else reference_answer(reference)


@lru_cache(maxsize=REMEMBERED)
def _remembered(reference: str) -> str:
    return reference_answer(reference)
