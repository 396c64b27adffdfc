"""`length`: 1 for a response whose length is within bounds; outside them, the value falls linearly to 0.

A blank response scores 0. For any other response:

    value = max(0, 1 - d / b)

d is the distance of the length from the interval [min_length, max_length]; within the interval, it is 0. b is the
`length_buffer`, by default the bound that the length exceeds or falls below.

If there is a target length, both bounds equal the target. The value is then 1 plus the linear length penalty of
L1-Exact (Aggarwal and Welleck 2025, arXiv:2503.04697) with alpha = 1 / length_buffer, but at least 0. With
max_length = L_max - L_cache and length_buffer = L_cache, the value is 1 plus DAPO's soft overlong punishment (Yu et al.
2025, arXiv:2503.14476, equation 13). Both papers count tokens.
"""

from __future__ import annotations

import math

from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome

UNITS = ("words", "characters")
MAX_RESPONSE = 1_000_000
"""Maximum number of characters of a response whose words are counted; a longer one scores 0."""
LONGEST = 1e12
"""The largest length that an option accepts."""


def length(
    response: str,
    target_length: float | None = None,
    min_length: float | None = None,
    max_length: float | None = None,
    length_buffer: float | None = None,
    length_unit: str | None = None,
) -> Outcome:
    """Score how well the length of the response fits the target or the bounds.

    Args:
        response: the policy's text.
        target_length: the only length that scores 1; cannot be combined with `min_length` or `max_length`.
        min_length: the shortest length that scores 1.
        max_length: the longest length that scores 1.
        length_buffer: distance from a bound at which the score reaches 0; by default the value of that bound.
        length_unit: unit of the four lengths: `words` (separated by white space; default) or `characters`.

    Raises:
        RequestError: an option is malformed, no length is given, or the lengths contradict each other.
    """
    bounds = {"target_length": target_length, "min_length": min_length, "max_length": max_length}
    options = Fields({**bounds, "length_buffer": length_buffer, "length_unit": length_unit})
    shortest, longest = _bounds(options)
    buffer = options.number("length_buffer", None, 1, LONGEST)
    unit = options.choice("length_unit", UNITS)
    if unit == "words" and len(response) > MAX_RESPONSE:
        return Outcome(0.0, f"the response is longer than {MAX_RESPONSE} characters")
    if not response.strip():
        return Outcome(0.0, "the response is blank")
    size = len(response) if unit == "characters" else len(response.split())
    distance, bound = (shortest - size, shortest) if size < shortest else (size - longest, longest)
    return Outcome(1.0 if distance <= 0 else max(0.0, 1 - distance / (buffer or bound)))


def _bounds(options: Fields) -> tuple[float, float]:
    exact, shortest, longest = (
        options.number(name, None, 1, LONGEST) for name in ("target_length", "min_length", "max_length")
    )
    if exact is None and shortest is None and longest is None:
        raise field_error("target_length", "missing; set target_length, min_length or max_length")
    if exact is not None and (shortest is not None or longest is not None):
        raise field_error("target_length", "set either target_length, or min_length and max_length")
    if exact is not None:
        return exact, exact
    bounds = shortest or 0.0, longest or math.inf
    if bounds[0] > bounds[1]:
        raise field_error("min_length", "above max_length")
    return bounds
