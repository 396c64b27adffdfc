"""Decide how far an answer may be from a decimal: the digits that a decimal shows give its precision."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

ANSWER_DIGITS = 6
"""Significant digits that an answer's decimal must show to match an exact reference."""
REFERENCE_DIGITS = 3
"""Significant digits that a reference's decimal must show so that values that round to it are right."""

PRINTED_DIGITS = range(15, 18)
"""Significant digits of decimals that a program prints from 64-bit floating-point numbers."""
ROUNDING_ERROR = Fraction(1, 2**51)
"""Relative error of a decimal with `PRINTED_DIGITS`: a few units in the last place of a 64-bit float."""

Decimal = tuple[Fraction, int]
"""Value and number of decimal places; the number is negative if the last digit shown is before the units digit."""

_tolerance: ContextVar[Fraction | None] = ContextVar("tolerance", default=None)


@contextmanager
def tolerating(tolerance: float | None) -> Iterator[None]:
    """Set the relative tolerance for comparisons within the context; it replaces the precision of decimals.

    Args:
        tolerance: a fraction of the reference; None to use the precision of the decimals.
    """
    token = _tolerance.set(None if tolerance is None else Fraction(str(tolerance)))
    try:
        yield
    finally:
        _tolerance.reset(token)


def tolerance() -> Fraction | None:
    """Return the relative tolerance of the current context; None if the digits of the decimals decide."""
    return _tolerance.get()


def reach(answer: Decimal | None, reference: Decimal | None) -> Fraction:
    """Return the distance between an answer and its reference from which the answer is wrong.

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
