"""Define math problems, and the functions, names and equations that their answers are built from."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.formulas import Formula, call, formula, name

x, y, n, k, t, s = map(name, "xynkts")
C, D = name("C"), name("D")
e, pi, lam, infinity = map(name, ("e", "pi", "lambda", "infinity"))


class Form(NamedTuple):
    """A way to write an answer.

    Args:
        parts: formulas of the answer.
        layout: text around the formulas, with `%s` for each.
        is_scaled: whether the first part multiplies the others.
    """

    parts: tuple[Formula, ...]
    layout: str = "%s"
    is_scaled: bool = False


class Problem(NamedTuple):
    """A math problem.

    Args:
        forms: equivalent forms of its answer.
        is_equation: whether a form's first two parts are the sides of an equation.
    """

    forms: tuple[Form, ...]
    is_equation: bool = False


def sin(of: Formula) -> Formula:
    """Return the sine of a formula."""
    return call("sin", of)


def cos(of: Formula) -> Formula:
    """Return the cosine of a formula."""
    return call("cos", of)


def ln(of: Formula | int) -> Formula:
    """Return the natural logarithm of a formula."""
    return call("ln", of)


def sqrt(of: Formula | int) -> Formula:
    """Return the square root of a formula."""
    return call("sqrt", of)


def exp(of: Formula) -> Formula:
    """Return e to the power of a formula."""
    return e**of


def formulas_of(*forms: Formula) -> Problem:
    """Return a problem whose answer is a formula, given in equivalent forms."""
    return Problem(tuple(Form((one,)) for one in forms))


def solutions(*forms: Formula) -> Problem:
    """Return a problem whose answer is a function y of x, given in equivalent forms."""
    return Problem(tuple(Form((one,), layout) for one in forms for layout in ("y = %s", "y(x) = %s")))


def equations(*sides: tuple[Formula, Formula | int]) -> Problem:
    """Return a problem whose answer is an equation, given by the two sides of equivalent forms."""
    return Problem(tuple(Form((left, formula(right)), "%s = %s") for left, right in sides), is_equation=True)
