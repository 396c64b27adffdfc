"""Define the public functions: `extract`, `parse`, `equivalent`, `verify` and `explain`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

from rewardstack_verifier.bounds import MAX_RESPONSE, refusal
from rewardstack_verifier.explanation import read_out
from rewardstack_verifier.extraction.extract import (
    STANDARD,
    check_mode,
    check_text,
    describe_type,
    extract_answer,
    reference_answer,
)
from rewardstack_verifier.question import DEFAULT, Options, Question, Ruling, answer_and_question, ask_about
from rewardstack_verifier.reading.lexer import is_same_text
from rewardstack_verifier.shortcut import decide_fast_path
from rewardstack_verifier.tracing import with_trace

TEXT, NUMBER, VALUE, UNDECIDED = "text", "number", "value", "undecided"
"""How an answer was compared: as normalized text, as a plain number, or by value.

`undecided` is a comparison by value that reached its limits without a result; the answer counts as wrong.
"""
NOT_COMPARED = ""
Reference = str | int | float
"""A right answer: text, or a number (also a NumPy number), which is converted with `str`."""


class Answer(NamedTuple):
    """A final answer.

    Args:
        text: the answer as it is written in the response.
        place: where the answer was found, for example `\\boxed` or `the answer is ...`.
    """

    text: str
    place: str


class Value(NamedTuple):
    """A text and its possible meanings.

    Args:
        text: the text that was parsed.
        readings: a syntax tree for each possible meaning; empty if the text cannot be parsed.
    """

    text: str
    readings: tuple[Any, ...]

    @property
    def kind(self) -> str:
        """The type of the first reading, for example `Number` or `Interval`; empty if there is none."""
        return type(self.readings[0]).__name__ if self.readings else ""


class Comparison(NamedTuple):
    """The result of comparing an answer with a reference.

    Args:
        equal: whether answer and reference are equal; None if the reference is empty, or if it cannot be parsed and
            the texts differ.
        reason: why they are not equal, or why the result is unknown; empty if they are equal.
        how: `text`, `number`, `value` or `undecided`; empty if nothing was compared.
    """

    equal: bool | None
    reason: str
    how: str


class Verdict(NamedTuple):
    """The verdict on a response.

    Args:
        value: 1.0 for a right answer, 0.0 for a wrong or missing one; None if there is no verdict, because every
            reference is empty or cannot be parsed.
        reason: why the answer is wrong or has no verdict; empty if it is right.
        answer: the extracted text; None if the response has no answer.
        how: how the answer was compared, as in `Comparison`.
    """

    value: float | None
    reason: str
    answer: str | None
    how: str

    @property
    def right(self) -> bool | None:
        """Whether the answer is right; None if there is no verdict."""
        return None if self.value is None else bool(self.value)


def extract(response: str, mode: str = STANDARD) -> Answer | None:
    """Return the final answer of a response; None if it has none.

    Args:
        response: text of the response. If it is longer than 1,000,000 characters, the result is None.
        mode: `strict` (the last `\\boxed`, `<answer>` tag or `####` line), `standard` (also "the answer is 5", and a
            response that is only an answer) or `flexible` (also the last formula or number).

    Raises:
        ValueError: `mode` is unknown.
        TypeError: the response is not a string.
    """
    check_mode(mode)
    check_text("response", response)
    if len(response) > MAX_RESPONSE:
        return None
    answer, places = with_trace(lambda: extract_answer(response, mode))
    return None if answer is None else Answer(answer, ", in ".join(dict.fromkeys(places)))


def parse(text: str) -> Value:
    """Parse an answer and return all its possible meanings.

    Args:
        text: an answer, for example `\\frac{1}{2}` or `5 \\text{ cm}`. A text beyond the limits of `bounds` has no
            readings.

    Raises:
        TypeError: the text is not a string.
    """
    check_text("text", text)
    from rewardstack_verifier.reading.readings import parse_readings  # loads the parser

    return Value(text, () if refusal(text) else parse_readings(text))


def equivalent(answer: str, reference: Reference, options: Options = DEFAULT) -> Comparison:
    """Compare an answer with a reference by value, or as normalized text if one of them cannot be parsed.

    The result depends only on the arguments, never on time, load, the hash seed or earlier calls.

    Args:
        answer: text of the answer, without the response around it.
        reference: a number, an answer, or a solution whose answer is in `\\boxed`, or after `####` or "the answer is".
        options: only `tolerance` and `simplified` are used.

    Raises:
        ValueError: the extraction mode is unknown, or the tolerance is out of range.
        TypeError: the answer is not a string, or the reference is neither a string nor a finite number.
    """
    _check_options(options)
    check_text("answer", answer)
    expected = reference_answer(_reference_text(reference))
    if not expected:
        return Comparison(None, "the reference is empty", NOT_COMPARED)
    ruling, how = _decide(ask_about(answer, (expected,), options))
    return Comparison(ruling.right, ruling.reason, how)


def verify(response: str, reference: Reference | Sequence[Reference], options: Options = DEFAULT) -> Verdict:
    """Verify the final answer of a response.

    This can be slow even within the limits of `bounds`. Run it in a process that can be killed, as the reward server
    (`rewardstack-rules`) does.

    Args:
        response: text of the response.
        reference: the right answer, or a list of right answers; each is a number or a text, as in `equivalent`.
        options: where the answer may be (`extraction`), the allowed relative error (`tolerance`), and whether
            arithmetic must be finished (`simplified`).

    Raises:
        ValueError: the extraction mode is unknown, or the tolerance is out of range.
        TypeError: the response is not a string, or a reference is neither a string nor a finite number.
    """
    _check_options(options)
    check_text("response", response)
    references = _reference_texts(reference)
    answer, asked = answer_and_question(response, references, options)
    ruling, how = _decide(asked)
    value = None if ruling.right is None else float(ruling.right)
    return Verdict(value, ruling.reason, answer, NOT_COMPARED if answer is None else how)


def explain(response: str, reference: Reference | Sequence[Reference], options: Options = DEFAULT) -> dict[str, Any]:
    """Return the verdict of `verify` and the facts from `explanation.read_out` in one dictionary of JSON types.

    Args:
        response: as in `verify`.
        reference: as in `verify`.
        options: as in `verify`.
    """
    references = _reference_texts(reference)
    verdict = verify(response, references, options)
    return {**read_out(response, references, options), **verdict._asdict()}


def _decide(question: Question | Ruling) -> tuple[Ruling, str]:
    """Return the ruling on a question, and how the answer was compared (`Comparison.how`)."""
    if isinstance(question, Ruling):
        return question, NOT_COMPARED if question.right is None else TEXT
    ruling = decide_fast_path(question)
    if ruling is not None:
        as_text = question.fault or any(is_same_text(question.answer, one) for one in question.expected)
        return ruling, TEXT if as_text else NUMBER
    from rewardstack_verifier.verification import decide_with_trace  # loads Flint

    ruling, compared = decide_with_trace(question)
    return ruling, ruling.by or (VALUE if "values" in compared else TEXT)


def _reference_text(reference: Reference) -> str:
    if isinstance(reference, str):
        return reference
    if isinstance(reference, Real) and not isinstance(reference, bool) and math.isfinite(reference):
        return str(reference)
    description = repr(reference) if isinstance(reference, float) else describe_type("reference", reference)
    raise TypeError(f"reference: expected a string, a finite number or a list of these, got {description}")


def _reference_texts(reference: Reference | Sequence[Reference]) -> list[str]:
    references: Sequence[Any] = reference if isinstance(reference, (list, tuple)) else [reference]
    return [_reference_text(one) for one in references]


def _check_options(options: Options) -> None:
    check_mode(options.extraction)
    tolerance = options.tolerance
    if tolerance is not None and (isinstance(tolerance, bool) or not 0 < tolerance <= 1):
        raise ValueError(f"tolerance: expected a number above 0 and up to 1, got {tolerance!r}")
