"""Read the answer of a response, and pair it with the references (`ask`), in linear time and without algebra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rewardstack_verifier.bounds import MAX_RESPONSE, refusal
from rewardstack_verifier.extraction.extract import MODES, STRICT, extract_answer, reference_answer
from rewardstack_verifier.reading.lexer import is_same_text

MAX_CACHED_LENGTH = 200
"""Maximum length of a reference whose answer is cached. Several responses share a reference, so a cache saves time."""
MAX_LENGTH_RATIO = 4
"""An answer that `bounds` refuses is compared as text if it is not much longer than the reference.

Its maximum length is this number times the length of the reference, plus 200 characters (`MAX_CACHED_LENGTH`).
"""
CACHED_REFERENCES = 2048
"""Number of references whose answers are cached."""


class Ruling(NamedTuple):
    """The internal form of a verdict; `api.Verdict` also has the answer and how it was compared.

    Args:
        right: whether the response is right; None if the references do not allow a verdict.
        reason: why the response is wrong or has no verdict; empty if it is right.
        by: `undecided` if the answer counts as wrong after a comparison reached its limits; else empty.
    """

    right: bool | None
    reason: str = ""
    by: str = ""


EXTRACTIONS = MODES
"""Extraction modes, the default first; `extraction.extract` describes them."""


class Options(NamedTuple):
    """Options of a verification.

    Args:
        extraction: one of `EXTRACTIONS`, which says where the answer may be.
        tolerance: maximum relative error of a number; None to use the precision of the decimals.
        simplified: whether unfinished arithmetic makes an answer wrong.
    """

    extraction: str = EXTRACTIONS[0]
    tolerance: float | None = None
    simplified: bool = False


DEFAULT = Options()


class Question(NamedTuple):
    """An answer to compare with the references. The verdict depends only on these fields.

    Args:
        answer: text of the answer, within the limits of `bounds`; empty if there is a `fault`.
        expected: the answers in the references, at least one.
        fault: why the answer cannot be right; empty if it can. With a fault, the verdict is False, or None if no
            reference can be parsed.
        tolerance: as in `Options`.
        simplified: as in `Options`.
    """

    answer: str
    expected: tuple[str, ...]
    fault: str = ""
    tolerance: float | None = None
    simplified: bool = False


def ask(solution: str, references: Sequence[str], options: Options = DEFAULT) -> Question | Ruling:
    """Return the `Question` (answer and references) for a response, or the ruling if the texts alone decide.

    Args:
        solution: text of the response.
        references: right answers, each as plain text, in `\\boxed`, or after `####`.
        options: options of the verification.
    """
    return answer_and_question(solution, references, options)[1]


def answer_and_question(
    solution: str, references: Sequence[str], options: Options = DEFAULT
) -> tuple[str | None, Question | Ruling]:
    """Return the answer of a response, and the result of `ask`.

    The answer is None if the response has no answer, or is too long.
    """
    expected = tuple(answer for answer in map(_expected_answer, references) if answer)
    is_long = len(solution) > MAX_RESPONSE
    if expected and options.extraction != STRICT and not is_long:
        text = solution.strip()
        if text and text in map(str.strip, references):
            return text, Ruling(True)
    answer = None if is_long else extract_answer(solution, options.extraction)
    if not expected:
        return answer, Ruling(None, "the reference is empty")
    if answer is None:
        return None, Question("", expected, "the response is too long" if is_long else "no answer")
    return answer, ask_about(answer, expected, options)


def ask_about(answer: str, expected: tuple[str, ...], options: Options) -> Question | Ruling:
    """Return the `Question` for an answer, or the ruling if the texts alone decide.

    Args:
        answer: text of the answer as it is written in the response.
        expected: the answers in the references, at least one.
        options: as in `ask`.
    """
    if answer in expected:
        return Ruling(True)
    reason = refusal(answer)
    if not reason:
        return Question(answer, expected, "", options.tolerance, options.simplified)
    comparable = [one for one in expected if len(answer) <= MAX_LENGTH_RATIO * len(one) + MAX_CACHED_LENGTH]
    has_same_text = any(is_same_text(answer, reference) for reference in comparable)
    return Ruling(True) if has_same_text else Question("", expected, f"the answer cannot be parsed: {reason}")


def _expected_answer(reference: str) -> str:
    return _cached_reference_answer(reference) if len(reference) <= MAX_CACHED_LENGTH else reference_answer(reference)


@lru_cache(maxsize=CACHED_REFERENCES)
def _cached_reference_answer(reference: str) -> str:
    return reference_answer(reference)
