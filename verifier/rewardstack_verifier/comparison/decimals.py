"""Decimals match values that round to them: their precision is given by the digits that they show."""

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
"""Relative error of such a decimal: a few units in the last place."""

Decimal = tuple[Fraction, int]
"""A decimal's value, and its number of decimal places; negative if its last integer digits are not shown."""

_tolerance: ContextVar[Fraction | None] = ContextVar("tolerance", default=None)


@contextmanager
def tolerating(tolerance: float | None) -> Iterator[None]:
    """Compare numbers with a relative tolerance within the context, whatever digits they show.

    Args:
        tolerance: relative to the reference; None to use the precision of the decimals.
    """
    token = _tolerance.set(None if tolerance is None else Fraction(str(tolerance)))
    try:
        yield
    finally:
        _tolerance.reset(token)


def tolerance() -> Fraction | None:
    """Return the tolerance of the current context; None if the digits of the decimals decide."""
    return _tolerance.get()


def reach(answer: Decimal | None, reference: Decimal | None) -> Fraction:
    """Return the distance from which an answer that is not equal to its reference is wrong.

    A reference with `REFERENCE_DIGITS` or more matches values less than half of its last digit away. An answer with
    `ANSWER_DIGITS` or more matches values less than one unit of its last digit away, rounded or truncated. A
    decimal that a program printed, `0.30000000000000004`, matches values within its rounding error, on both sides.

    Args:
        answer: the decimal; None if the answer is not a decimal, so that it is exact.
        reference: the same for the reference.
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
