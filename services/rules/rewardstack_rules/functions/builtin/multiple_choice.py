"""`multiple_choice`: 1 if the response chooses the reference's letter, A to J; else 0."""

from __future__ import annotations

import re

from rewardstack.cause import Cause
from rewardstack.core.fields import Fields
from rewardstack_rules.functions.outcome import Outcome, Unscored
from rewardstack_verifier.extraction.choices import FULL_WIDTH, chosen_letters
from rewardstack_verifier.question import EXTRACTIONS

_REFERENCE = re.compile(r"\s*[(\[]?(?P<letter>[A-Ja-j])(?:[)\].:]{0,2}\s*|[)\].:]{1,2}\s.*)", re.DOTALL)


def multiple_choice(response: str, reference: str, extraction: str | None = None) -> Outcome:
    """Compare the letter that the response chooses with the reference.

    Args:
        response: the policy's text; an answer of several letters ("A or B") is wrong.
        reference: the correct letter, alone or as in `(B)`, `B.` or `B) Paris`.
        extraction: how to find the letter: `standard` (default), `strict` or `flexible`
            (`rewardstack_verifier.extraction.choices`).

    Raises:
        Unscored: the reference is not a letter from A to J.
        RequestError: `extraction` is not one of its three values.
    """
    mode = Fields({"extraction": extraction}).choice("extraction", EXTRACTIONS)
    expected = _REFERENCE.fullmatch(reference.translate(FULL_WIDTH))
    if expected is None:
        raise Unscored("the reference is not a letter from A to J", cause=Cause.BAD_REFERENCE)
    letters = chosen_letters(response, mode)
    if len(letters) != 1:
        return Outcome(
            0.0,
            f"the answer names several letters: {letters}"
            if letters
            else "the response has no answer that is a letter from A to J",
        )
    letter = expected["letter"].upper()
    return Outcome(1.0) if letters == letter else Outcome(0.0, f"wrong answer: {letters}, the reference is {letter}")
