"""Use the digits of decimals to compute how far an answer may be from its reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

ANSWER_DIGITS = 6
"""An answer with at least this number of significant digits may be a rounded or truncated value of the reference."""
REFERENCE_DIGITS = 3
"""A reference with at least this number of significant digits matches the values that round to it."""

PRINTED_DIGITS = range(15, 18)
"""A decimal with one of these numbers of significant digits counts as a 64-bit float that a program printed."""
ROUNDING_ERROR = Fraction(1, 2**51)
"""Maximum relative error of a decimal with `PRINTED_DIGITS`: a few units in the last place of a 64-bit float."""

Decimal = tuple[Fraction, int]
"""The value of a decimal, and its number of decimal places.

The number of places is negative if the last digit shown counts tens or more: -2 for `1.2e3`, where it counts hundreds.
"""

_tolerance: ContextVar[Fraction | None] = ContextVar("tolerance", default=None)


@contextmanager
def use_tolerance(tolerance: float | None) -> Iterator[None]:
    """Within a `with` block, compare with a relative tolerance instead of the precision of the decimals.

    Args:
        tolerance: a fraction of the reference; None to use the precision of the decimals.
    """
    token = _tolerance.set(None if tolerance is None else Fraction(str(tolerance)))
    try:
        yield
    finally:
        _tolerance.reset(token)


def current_tolerance() -> Fraction | None:
    """Return the relative tolerance of the current context; None if the digits of the decimals decide."""
    return _tolerance.get()


def max_distance(answer: Decimal | None, reference: Decimal | None) -> Fraction:
    """Return the distance from the reference at which an answer becomes wrong.

    A reference with at least `REFERENCE_DIGITS` digits matches values that differ from it by less than half a unit of
    its last digit. An answer with at least `ANSWER_DIGITS` digits may be rounded or truncated, so it matches values
    that differ from it by less than one unit of its last digit. A decimal that a program printed,
    `0.30000000000000004`, matches values that differ from it by less than its rounding error.

    Args:
        answer: the answer if it is a decimal; None if it is exact.
        reference: the reference if it is a decimal; None if it is exact.
    """
    errors = _rounding_error(answer), _rounding_error(reference)
    limits = [Fraction(0), *errors]
    if reference is not None and _digits(reference) >= REFERENCE_DIGITS:
        limits.append(_unit(reference) / 2 - errors[0])
    if answer is not None and _digits(answer) >= ANSWER_DIGITS:
        limits.append(_unit(answer) - errors[1])
    return max(limits)


def _rounding_error(decimal: Decimal | None) -> Fraction:
    """Return the rounding error of a decimal that a program printed; 0 for other decimals."""
    printed = decimal is not None and _digits(decimal) in PRINTED_DIGITS
    return abs(decimal[0]) * ROUNDING_ERROR if decimal is not None and printed else Fraction(0)


def _unit(decimal: Decimal) -> Fraction:
    """Return the place value of the last digit that a decimal shows."""
    return Fraction(10) ** -decimal[1]


def _digits(decimal: Decimal) -> int:
    """Return the number of significant digits that a decimal shows, including zeros at its end."""
    return len(str(abs(int(decimal[0] / _unit(decimal)))))
