"""Compute how far an answer may be from a reference, from the digits of their decimals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

ANSWER_DIGITS = 6
"""Minimum number of significant digits of an answer's decimal that can match an exact reference."""
REFERENCE_DIGITS = 3
"""Minimum number of significant digits of a reference's decimal that accepts values that round to it."""

PRINTED_DIGITS = range(15, 18)
"""Numbers of significant digits of a printed 64-bit floating-point number."""
ROUNDING_ERROR = Fraction(1, 2**51)
"""Relative error of a decimal with `PRINTED_DIGITS`: a few units in the last place of a 64-bit float."""

Decimal = tuple[Fraction, int]
"""Value and number of decimal places; the number is negative if the last digit shown is before the units digit."""

_tolerance: ContextVar[Fraction | None] = ContextVar("tolerance", default=None)


@contextmanager
def use_tolerance(tolerance: float | None) -> Iterator[None]:
    """Set the relative tolerance for comparisons in the context, in place of the precision of decimals.

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

    A reference with at least `REFERENCE_DIGITS` digits matches values less than half a unit of its last digit away. An
    answer with at least `ANSWER_DIGITS` digits, rounded or truncated, matches values less than one unit of its last
    digit away. A decimal that a program printed, `0.30000000000000004`, matches values within its rounding error.

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
