"""Decimals stand for what rounds to them: how far they reach is in the digits that they show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

ANSWER_DIGITS = 6
"""Significant digits that an answer's decimal must show to stand for an exact reference."""
REFERENCE_DIGITS = 3
"""Significant digits that a reference's decimal must show for what rounds to it to be right."""

PRINTED_DIGITS = range(15, 18)
"""Significant digits that a decimal may show which a program has printed from a floating-point number of 64 bits."""
ROUNDING_ERROR = Fraction(1, 2**51)
"""How far such a decimal may be from what it stands for, in proportion: a few units in the last place."""

Decimal = tuple[Fraction, int]
"""A decimal's value, and the digits that it shows behind the point; negative where its last digits are not shown."""

_tolerance: ContextVar[Fraction | None] = ContextVar("tolerance", default=None)


@contextmanager
def tolerating(tolerance: float | None) -> Iterator[None]:
    """Meanwhile numbers are equal within a tolerance, whatever digits they show.

    Args:
        tolerance: in proportion to the reference; None for what decimals allow.
    """
    token = _tolerance.set(None if tolerance is None else Fraction(str(tolerance)))
    try:
        yield
    finally:
        _tolerance.reset(token)


def tolerance() -> Fraction | None:
    """The tolerance in force; None where decimals reach as far as their digits say."""
    return _tolerance.get()


def reach(answer: Decimal | None, reference: Decimal | None) -> Fraction:
    """From which distance on an answer is another number than its reference, though they are not equal.

    A reference of `REFERENCE_DIGITS` or more takes what is less than half of its last digit away; an answer of
    `ANSWER_DIGITS` or more stands for what is less than one of its last digit away, rounded or cut off. What a program
    prints, `0.30000000000000004`, stands for what its last digits may be wrong by, in either.

    Args:
        answer: None where it is no decimal, so that it is exact.
        reference: likewise.
    """
    errors = _rounding_error(answer), _rounding_error(reference)
    limits = [Fraction(0), *errors]
    if reference is not None and _digits(reference) >= REFERENCE_DIGITS:
        limits.append(_unit(reference) / 2 - errors[0])
    if answer is not None and _digits(answer) >= ANSWER_DIGITS:
        limits.append(_unit(answer) - errors[1])
    return max(limits)


def _rounding_error(decimal: Decimal | None) -> Fraction:
    """How far what a program has printed may be from its value; nothing for other decimals."""
    printed = decimal is not None and _digits(decimal) in PRINTED_DIGITS
    return abs(decimal[0]) * ROUNDING_ERROR if decimal is not None and printed else Fraction(0)


def _unit(decimal: Decimal) -> Fraction:
    """One of the last digit that a decimal shows."""
    return Fraction(10) ** -decimal[1]


def _digits(decimal: Decimal) -> int:
    """Significant digits that a decimal shows, zeros at its end included."""
    return len(str(abs(int(decimal[0] / _unit(decimal)))))
