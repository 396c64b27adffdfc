"""What a response leaves to be decided: `ask`. It reads text alone, in linear time, and loads no library of algebra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_RESPONSE, refusal
from rewardstack_verifier.extraction.extract import MODES, STRICT, extract_answer, reference_answer
from rewardstack_verifier.reading.lexer import is_same_text

SHORT = 200
"""Characters of a reference whose answer is remembered: several responses are compared with one."""
LONGER = 4
"""Times the length of a reference, and `SHORT` characters more, that a refused answer with its tokens may have."""
REMEMBERED = 2048
"""Such references."""


class Ruling(NamedTuple):
    """What became of a response.

    Args:
        right: whether it is right; None where the references do not allow to say so.
        reason: why it is wrong or has no verdict; empty where it is right.
        by: `undecided` where a comparison reached a bound, so that the answer is wrong; else empty.
    """

    right: bool | None
    reason: str = ""
    by: str = ""


EXTRACTIONS = MODES
"""What counts as an answer, the default first: see `extraction.extract`."""


class Options(NamedTuple):
    """What a caller asks for beside equality.

    Args:
        extraction: one of `EXTRACTIONS`.
        tolerance: how far a number may be from the reference's, in proportion to that; None for what decimals allow.
        simplified: whether arithmetic that is left undone makes an answer wrong.
    """

    extraction: str = EXTRACTIONS[0]
    tolerance: float | None = None
    simplified: bool = False


DEFAULT = Options()


class Question(NamedTuple):
    """Whether an answer equals one of the references; all that a verdict depends on.

    Args:
        answer: as it stands in the response, within the bounds; empty where there is none that may be compared.
        expected: the answers in the references, at least one.
        fault: why the answer cannot be right, so that the references alone decide the verdict; empty where it can.
        tolerance: as in `Options`.
        simplified: likewise.
    """

    answer: str
    expected: tuple[str, ...]
    fault: str = ""
    tolerance: float | None = None
    simplified: bool = False


def ask(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Question | Ruling:
    """What is to be decided about a response, or the verdict where the text alone decides it.

    Args:
        solution: what the policy wrote.
        references: right answers, each as it is, in a box, or behind `####`.
        options: what is asked for beside equality.
    """
    return answer_and_question(solution, references, options)[1]


def answer_and_question(
    solution: str, references: Sequence[str], options: Options = DEFAULT
) -> tuple[str | None, Question | Ruling]:
    """Return the answer of a response, None where none is found or looked for, and what `ask` returns."""
    expected = tuple(answer for answer in map(_expected, references) if answer)
    is_long = len(solution) > MAX_RESPONSE
    if expected and options.extraction != STRICT and not is_long:
        text = solution.strip()
        if text and text in map(str.strip, references):
            return text, Ruling(True)
    answer = None if is_long else extract_answer(solution, options.extraction)
    if not expected:
        return answer, Ruling(None, "the reference is empty")
    if answer is None:
        return None, Question("", expected, "response too long" if is_long else "no answer")
    return answer, ask_about(answer, expected, options)


def ask_about(answer: str, expected: tuple[str, ...], options: Options) -> Question | Ruling:
    """Return what is to be decided about an answer, or the ruling where the text alone decides it.

    Args:
        answer: as it is written in a response.
        expected: the answers in the references, at least one.
        options: as in `ask`.
    """
    if answer in expected:
        return Ruling(True)
    refused = refusal(answer)
    if not refused:
        return Question(answer, expected, "", options.tolerance, options.simplified)
    near = [one for one in expected if len(answer) <= LONGER * len(one) + SHORT]
    same = any(is_same_text(answer, reference) for reference in near)
    return Ruling(True) if same else Question("", expected, f"answer {refused}")


def _expected(reference: str) -> str:
    return _remembered(reference) if len(reference) <= SHORT else reference_answer(reference)


@lru_cache(maxsize=REMEMBERED)
def _remembered(reference: str) -> str:
    return reference_answer(reference)
