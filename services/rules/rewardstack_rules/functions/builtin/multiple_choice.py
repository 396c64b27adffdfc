"""`multiple_choice`: 1 if the response chooses exactly the letters of the reference, A to J; else 0."""

from __future__ import annotations

import re

from rewardstack.cause import Cause
from rewardstack.core.fields import Fields
from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_verifier.extraction.choices import ADJACENT, FULL_WIDTH, chosen_letters
from rewardstack_verifier.question import EXTRACTIONS

_REFERENCE = re.compile(r"\s*[(\[]?(?P<letter>[A-Ja-j])(?:[)\].:]{0,2}\s*|[)\].:]{1,2}\s.*)", re.DOTALL)
_LETTER = r"""[("']?[A-J][)"']?"""
_SEVERAL = re.compile(
    rf"[\[\s]*(?:{_LETTER}(?:(?:\s*[,;&、]|,?\s+and\b)\s*{_LETTER})+|[A-J](?: [A-J])+|{ADJACENT.pattern})[\].\s]*"
)
"""A reference of several letters: `ACD`, `A, C`, `(A) and (C)`, `["A", "C"]`."""


def multiple_choice(response: str, reference: str, extraction: str | None = None) -> Outcome:
    """Compare the letters that the response chooses with the reference.

    Args:
        response: the policy's text; alternatives ("A or B") are wrong.
        reference: the correct letter, alone or as in `(B)`, `B.` or `B) Paris`; or all correct letters, as in `ACD` or
            `A, C`, which the response must choose together, in any order.
        extraction: how to find the letter: `standard` (default), `strict` or `flexible`
            (`rewardstack_verifier.extraction.choices`).

    Raises:
        Unscored: the reference is neither a letter from A to J nor several different ones.
        RequestError: `extraction` is not one of its three values.
    """
    mode = Fields({"extraction": extraction}).choice("extraction", EXTRACTIONS)
    expected = _read_reference(reference.translate(FULL_WIDTH))
    letters = chosen_letters(response, mode, several=len(expected) > 1)
    if not letters:
        return Outcome(0.0, "the response has no answer that is a letter from A to J")
    if len(letters) > len(expected) == 1:
        return Outcome(0.0, f"the answer names several letters: {letters}")
    is_right = sorted(letters) == sorted(expected)
    return Outcome(1.0) if is_right else Outcome(0.0, f"wrong answer: {letters}, the reference is {expected}")


def _read_reference(reference: str) -> str:
    """Return the correct letters.

    Raises:
        Unscored: the reference has none, or names one twice.
    """
    if _SEVERAL.fullmatch(reference):
        letters = "".join(re.findall("[A-J]", reference))
    else:
        single = _REFERENCE.fullmatch(reference)
        letters = single["letter"].upper() if single else ""
    if not letters or len({*letters}) < len(letters):
        raise Unscored(
            "the reference is neither a letter from A to J nor several different ones", cause=Cause.BAD_REFERENCE
        )
    return letters
