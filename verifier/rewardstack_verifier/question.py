"""Read a response and return what must be compared: `ask`. It takes linear time and loads no algebra library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_RESPONSE, refusal
from rewardstack_verifier.extraction.extract import MODES, STRICT, extract_answer, reference_answer
from rewardstack_verifier.reading.lexer import is_same_text

SHORT = 200
"""Maximum characters of a reference whose answer is cached: several responses are compared with one reference."""
LONGER = 4
"""A refused answer is compared as text up to this multiple of the reference's length, plus `SHORT` characters."""
CACHED_REFERENCES = 2048
"""Number of such references."""


class Ruling(NamedTuple):
    """The verdict on a response.

    Args:
        right: whether it is right; None if the references do not allow a verdict.
        reason: why it is wrong or has no verdict; empty if it is right.
        by: `undecided` if a comparison reached a limit, so that the answer is wrong; else empty.
    """

    right: bool | None
    reason: str = ""
    by: str = ""


EXTRACTIONS = MODES
"""Extraction modes, the default first: see `extraction.extract`."""


class Options(NamedTuple):
    """Options of a verification.

    Args:
        extraction: where the answer may be: one of `EXTRACTIONS`.
        tolerance: maximum relative error of a number; None for the precision of the decimals.
        simplified: whether unfinished arithmetic makes an answer wrong.
    """

    extraction: str = EXTRACTIONS[0]
    tolerance: float | None = None
    simplified: bool = False


DEFAULT = Options()


class Question(NamedTuple):
    """An answer to compare with the references; a verdict depends on nothing else.

    Args:
        answer: text of the answer, within the limits; empty if there is none that may be compared.
        expected: the answers in the references, at least one.
        fault: why the answer cannot be right, so that only the references decide the verdict; empty if it can.
        tolerance: as in `Options`.
        simplified: as in `Options`.
    """

    answer: str
    expected: tuple[str, ...]
    fault: str = ""
    tolerance: float | None = None
    simplified: bool = False


def ask(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Question | Ruling:
    """Return what must be compared for a response, or the verdict if the text alone decides it.

    Args:
        solution: text of the response.
        references: right answers, each as plain text, in a box, or after `####`.
        options: options of the verification.
    """
    return answer_and_question(solution, references, options)[1]


def answer_and_question(
    solution: str, references: Sequence[str], options: Options = DEFAULT
) -> tuple[str | None, Question | Ruling]:
    """Return the answer of a response (None if none is found or searched), and what `ask` returns."""
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
    """Return what must be compared for an answer, or the ruling if the text alone decides it.

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
    return _cached(reference) if len(reference) <= SHORT else reference_answer(reference)


@lru_cache(maxsize=CACHED_REFERENCES)
def _cached(reference: str) -> str:
    return reference_answer(reference)
