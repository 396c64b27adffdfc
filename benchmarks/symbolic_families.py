"""Define antiderivatives, solutions of differential equations, and curves, each in several forms: `KINDS`."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.formulas import call, ratio
from benchmarks.problem import C, D, Problem, cos, equations, exp, formulas_of, ln, sin, solutions, x, y


def _antiderivative_of_power(a: int, b: int) -> Problem:
    return formulas_of(
        (a * x + b) ** 3 / (3 * a) + C,
        ratio(1, 3 * a) * (a * x + b) ** 3 + C,
        ratio(a * a, 3) * x**3 + a * b * x**2 + b * b * x + C,
    )


def _antiderivative_of_sines(a: int, b: int) -> Problem:
    return formulas_of(
        ratio(b, 2 * a) * sin(a * x) ** 2 + C,
        ratio(-b, 2 * a) * cos(a * x) ** 2 + C,
        ratio(-b, 4 * a) * cos(2 * a * x) + C,
    )


def _antiderivative_by_parts(a: int, b: int) -> Problem:
    return formulas_of(
        b * exp(a * x) * (x / a - ratio(1, a * a)) + C,
        ratio(b, a * a) * (a * x - 1) * exp(a * x) + C,
        b * x * exp(a * x) / a - b * exp(a * x) / (a * a) + C,
    )


def _antiderivative_of_fractions(a: int, b: int, c: int, d: int) -> Problem:
    one, other = call("abs", x + b), call("abs", x + d)
    return formulas_of(a * ln(one) + c * ln(other) + C, ln(one**a * other**c) + C, c * ln(other) + C + a * ln(one))


def _antiderivative_of_arctangent(a: int, b: int) -> Problem:
    return formulas_of(
        ratio(b, a) * call("arctan", x / a) + C,
        b * call("arctan", x / a) / a + C,
        ratio(b, a) * call("arctan", ratio(1, a) * x) + C,
    )


def _growth_to_a_limit(a: int, b: int) -> Problem:
    return solutions(C * exp(-a * x) + b, b + C / exp(a * x), b - C * exp(-a * x))


def _linear_of_first_order(a: int, b: int) -> Problem:
    return solutions(ratio(1, a) * x**2 + b * x + C / x, (x**3 + a * b * x**2 + C) / (a * x), x**2 / a + b * x + C / x)


def _two_real_roots(a: int, b: int) -> Problem:
    return solutions(
        C * exp(a * x) + D * exp(b * x), C * exp(b * x) + D * exp(a * x), (C + D * exp((b - a) * x)) * exp(a * x)
    )


def _opposite_roots(a: int) -> Problem:
    return solutions(C * exp(a * x) + D * exp(-a * x), C * call("cosh", a * x) + D * call("sinh", a * x))


def _complex_roots(a: int, b: int) -> Problem:
    return solutions(
        exp(a * x) * (C * cos(b * x) + D * sin(b * x)),
        C * exp(a * x) * cos(b * x) + D * exp(a * x) * sin(b * x),
        exp(a * x) * (C * sin(b * x) + D * cos(b * x)),
    )


def _double_root(a: int) -> Problem:
    return solutions((C + D * x) * exp(a * x), C * exp(a * x) + D * x * exp(a * x), exp(a * x) * (C * x + D))


def _forced(a: int, b: int, c: int) -> Problem:
    return solutions(
        C * cos(a * x) + D * sin(a * x) + ratio(b, a * a) * x - ratio(c, a * a),
        C * sin(a * x) + D * cos(a * x) + (b * x - c) / (a * a),
        (b * x - c) / (a * a) + C * cos(a * x) + D * sin(a * x),
    )


def _separable(a: int, b: int) -> Problem:
    return equations((y**2, a * x**2 + b * x + C), (y**2 - a * x**2 - b * x, C), (y**2 - b * x, a * x**2 + C))


def _tangent_line(a: int, b: int, c: int) -> Problem:
    return equations((y, a * x + (c - a * b)), (y - c, a * (x - b)), (a * x - y + (c - a * b), 0))


def _circle(a: int, b: int, c: int) -> Problem:
    rest = a * a + b * b - c * c
    return equations(
        ((x + a) ** 2 + (y + b) ** 2, c * c),
        (x**2 + 2 * a * x + y**2 + 2 * b * y + rest, 0),
        (x**2 + y**2 + 2 * a * x + 2 * b * y, -rest),
    )


KINDS: dict[str, tuple[Callable[..., Problem], str]] = {
    "antiderivative of power": (_antiderivative_of_power, "+±"),
    "antiderivative of sines": (_antiderivative_of_sines, "++"),
    "antiderivative by parts": (_antiderivative_by_parts, "±+"),
    "antiderivative of fractions": (_antiderivative_of_fractions, "+±+±"),
    "antiderivative of arctangent": (_antiderivative_of_arctangent, "++"),
    "growth to a limit": (_growth_to_a_limit, "+±"),
    "linear of first order": (_linear_of_first_order, "+±"),
    "two real roots": (_two_real_roots, "±±"),
    "opposite roots": (_opposite_roots, "+"),
    "complex roots": (_complex_roots, "±+"),
    "double root": (_double_root, "±"),
    "forced": (_forced, "+++"),
    "separable": (_separable, "+±"),
    "tangent line": (_tangent_line, "+±±"),
    "circle": (_circle, "±±+"),
}
"""Generator of each kind of problem, and the signs of its arguments: `+`, or `±` for either sign."""
