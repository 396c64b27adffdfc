"""What a problem of mathematics is, and what the answers to it are made of: functions, names, equations."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.formulas import Formula, call, formula, name

x, y, n, k, t, s = map(name, "xynkts")
C, D = name("C"), name("D")
e, pi, lam, infinity = map(name, ("e", "pi", "lambda", "infinity"))


class Form(NamedTuple):
    """A way to write an answer.

    Args:
        parts: the formulas in it.
        layout: the text around these, each of which is `%s`.
        is_scaled: whether the first part multiplies the others.
    """

    parts: tuple[Formula, ...]
    layout: str = "%s"
    is_scaled: bool = False


class Problem(NamedTuple):
    """One problem.

    Args:
        forms: of its answer, all equal.
        is_equation: whether a form's first two parts are the sides of an equation.
    """

    forms: tuple[Form, ...]
    is_equation: bool = False


def sin(of: Formula) -> Formula:
    """Its sine."""
    return call("sin", of)


def cos(of: Formula) -> Formula:
    """Its cosine."""
    return call("cos", of)


def ln(of: Formula | int) -> Formula:
    """Its natural logarithm."""
    return call("ln", of)


def sqrt(of: Formula | int) -> Formula:
    """Its square root."""
    return call("sqrt", of)


def exp(of: Formula) -> Formula:
    """The exponential function of it."""
    return e**of


def formulas_of(*forms: Formula) -> Problem:
    """A problem whose answer is a formula."""
    return Problem(tuple(Form((one,)) for one in forms))


def solutions(*forms: Formula) -> Problem:
    """A problem whose answer is a function y."""
    return Problem(tuple(Form((one,), layout) for one in forms for layout in ("y = %s", "y(x) = %s")))


def equations(*sides: tuple[Formula, Formula | int]) -> Problem:
    """A problem whose answer is an equation."""
    return Problem(tuple(Form((left, formula(right)), "%s = %s") for left, right in sides), is_equation=True)
