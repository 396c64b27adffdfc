"""Define problems of algebra and calculus, with several forms of the answer to each: `KINDS`."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.formulas import call, decimal, determinant, formula, ratio, series
from benchmarks.problem import (
    Form,
    Problem,
    cos,
    e,
    exp,
    formulas_of,
    infinity,
    k,
    lam,
    ln,
    n,
    pi,
    s,
    sin,
    sqrt,
    t,
    x,
    y,
)
from benchmarks.symbolic_families import KINDS as FAMILIES


def _quadratic(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        a * x**2 + a * (b + c) * x + a * b * c, a * (x + b) * (x + c), x * (a * x + a * (b + c)) + a * b * c
    )


def _cubic(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        (x + a) * (x**2 + b * x + c),
        x**3 + (a + b) * x**2 + (a * b + c) * x + a * c,
        x * (x**2 + b * x + c) + a * x**2 + a * b * x + a * c,
    )


def _partial_fractions(a: int, b: int, c: int, d: int) -> Problem:
    top = (a + c) * x + (a * d + b * c)
    return formulas_of(a / (x + b) + c / (x + d), top / ((x + b) * (x + d)), top / (x**2 + (b + d) * x + b * d))


def _quotient_rule(a: int, b: int) -> Problem:
    return formulas_of(
        b * (a - x**2) / (x**2 + a) ** 2,
        b / (x**2 + a) - 2 * b * x**2 / (x**2 + a) ** 2,
        (a * b - b * x**2) / (x**4 + 2 * a * x**2 + a * a),
    )


def _gradient(a: int, b: int, c: int) -> Problem:
    along, across = a * x ** (a - 1) * y**b + c * y, b * x**a * y ** (b - 1) + c * x
    taken_out = y * (a * x ** (a - 1) * y ** (b - 1) + c)
    layouts = (r"\langle %s, %s \rangle", r"\left(%s, %s\right)", r"(%s)\mathbf{i} + (%s)\mathbf{j}")
    return Problem(tuple(Form((one, across), layout) for one in (along, taken_out) for layout in layouts))


def _square_of_sine(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        a * sin(c * x) ** 2 + b,
        ratio(a, 2) * (1 - cos(2 * c * x)) + b,
        formula(a + b) - a * cos(c * x) ** 2,
    )


def _sine_times_cosine(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        c * sin(a * x) * cos(b * x),
        ratio(c, 2) * (sin((a + b) * x) + sin((a - b) * x)),
        ratio(c, 2) * sin((a + b) * x) + ratio(c, 2) * sin((a - b) * x),
    )


def _amplitude(a: int, b: int) -> Problem:
    return formulas_of(
        3 * a * cos(b * x) + 4 * a * sin(b * x),
        5 * a * cos(b * x - call("arctan", ratio(4, 3))),
        a * (3 * cos(b * x) + 4 * sin(b * x)),
    )


def _tangent(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        a * call("tan", c * x) ** 2 + b,
        a * call("sec", c * x) ** 2 + (b - a),
        formula(a) / cos(c * x) ** 2 + (b - a),
        a * sin(c * x) ** 2 / cos(c * x) ** 2 + b,
    )


def _exponentials(a: int, b: int, c: int, d: int) -> Problem:
    whole = a * exp((b + d) * x) + c
    return formulas_of(a * exp(b * x) + c * exp(-d * x), whole / exp(d * x), exp(-d * x) * whole)


def _hyperbolic(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        a * call("cosh", b * x) + c * call("sinh", b * x),
        ratio(a + c, 2) * exp(b * x) + ratio(a - c, 2) * exp(-b * x),
        ((a + c) * exp(b * x) + (a - c) * exp(-b * x)) / 2,
    )


def _logarithms(a: int, b: int, c: int, d: int) -> Problem:
    return formulas_of(a * ln(x + b) - c * ln(x + d), ln((x + b) ** a / (x + d) ** c), -c * ln(x + d) + a * ln(x + b))


def _growth(a: int, b: int) -> Problem:
    return formulas_of(
        10 * a * exp(-decimal(b, 2) * t),
        10 * a * exp(-ratio(b, 100) * t),
        10 * a / exp(decimal(b, 2) * t),
    )


def _powers_of_roots(a: int, b: int) -> Problem:
    return formulas_of(
        a * x ** ratio(3, 2) - b * x ** ratio(1, 2), a * x * sqrt(x) - b * sqrt(x), sqrt(x) * (a * x - b)
    )


def _inverse_sine(a: int, b: int) -> Problem:
    return formulas_of(
        a * b / sqrt(1 - b * b * x**2), a / sqrt(ratio(1, b * b) - x**2), a * b * (1 - b * b * x**2) ** ratio(-1, 2)
    )


def _integral_of_logarithm(a: int, b: int, c: int) -> Problem:
    return formulas_of(a * ln(b) + ratio(c, 2), ln(b**a) + ratio(c, 2), (2 * a * ln(b) + c) / 2)


def _area_of_circles(a: int, b: int, c: int) -> Problem:
    return formulas_of(ratio(a, b) * pi - c, a * pi / b - c, (a * pi - b * c) / b)


def _rationalised(a: int, b: int, c: int) -> Problem:
    top = sqrt(b) + sqrt(c)
    return formulas_of(formula(a) / (sqrt(b) - sqrt(c)), a * top / (b - c), ratio(a, b - c) * top)


def _roots(a: int, b: int, c: int) -> Problem:
    return formulas_of(a * sqrt(b) + c * sqrt(2), sqrt(a * a * b) + sqrt(2 * c * c), c * sqrt(2) + a * sqrt(b))


def _power_of_e(a: int, b: int) -> Problem:
    return formulas_of(a * exp(ratio(b, 2)), a * sqrt(e**b), formula(a) / exp(ratio(-b, 2)))


def _determinant(a: int, b: int, c: int, d: int) -> Problem:
    return formulas_of(formula(a * d - b * c), determinant(a, b, c, d), formula(a * d) - b * c)


def _characteristic_polynomial(a: int, b: int, c: int, d: int) -> Problem:
    return formulas_of(
        lam**2 - (a + d) * lam + (a * d - b * c),
        (a - lam) * (d - lam) - b * c,
        determinant(a - lam, b, c, d - lam),
    )


def _inverse_matrix(a: int, b: int, c: int) -> Problem:
    entries, rows = (c + a * b, -a, -b, 1), r"%s & %s \\ %s & %s"
    layouts = (
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}}",
        f"\\left[\\begin{{array}}{{cc}} {rows} \\end{{array}}\\right]",
    )
    unreduced = tuple(formula(one) / c for one in entries)
    forms = (tuple(ratio(one, c) for one in entries), unreduced)
    outside = Form((ratio(1, c), *map(formula, entries)), f"%s\\begin{{pmatrix}} {rows} \\end{{pmatrix}}", True)
    return Problem((*(Form(parts, layout) for parts in forms for layout in layouts), outside))


def _power_series(a: int) -> Problem:
    return formulas_of(
        series((-1) ** n * a**n * x**n / call("factorial", n), n, 0, infinity),
        series((-a * x) ** k / call("factorial", k), k, 0, infinity),
        series((-a * x) ** (n - 1) / call("factorial", n - 1), n, 1, infinity),
    )


def _taylor_polynomial(a: int) -> Problem:
    u = a * x
    return formulas_of(
        u - ratio(a**3, 6) * x**3 + ratio(a**5, 120) * x**5,
        u - u**3 / call("factorial", 3) + u**5 / call("factorial", 5),
        a * x - a**3 * x**3 / 6 + a**5 * x**5 / 120,
    )


def _sum_to_n(a: int, b: int) -> Problem:
    return formulas_of(
        a * n * (n + 1) / 2 + b * n,
        n * (a * n + (a + 2 * b)) / 2,
        ratio(a, 2) * n**2 + ratio(a + 2 * b, 2) * n,
        series(a * k + b, k, 1, n),
    )


def _geometric_sum(a: int, b: int) -> Problem:
    return formulas_of(b * (a**n - 1) / (a - 1), ratio(b, a - 1) * (a**n - 1), (b * a**n - b) / (a - 1))


def _laplace_transform(a: int, b: int, c: int, d: int) -> Problem:
    return formulas_of(
        a / (s + b) + c * s / (s**2 + d * d),
        ((a + c) * s**2 + b * c * s + a * d * d) / ((s + b) * (s**2 + d * d)),
        c * s / (s**2 + d * d) + a / (s + b),
    )


def _damped(a: int, b: int, c: int) -> Problem:
    return formulas_of(
        exp(-a * t) * (b * cos(c * t) + a * sin(c * t)),
        b * exp(-a * t) * cos(c * t) + a * exp(-a * t) * sin(c * t),
        (b * cos(c * t) + a * sin(c * t)) / exp(a * t),
    )


KINDS: dict[str, tuple[Callable[..., Problem], str]] = {
    "quadratic": (_quadratic, "+±±"),
    "cubic": (_cubic, "±±±"),
    "partial fractions": (_partial_fractions, "+±+±"),
    "quotient rule": (_quotient_rule, "++"),
    "gradient": (_gradient, "++±"),
    "square of sine": (_square_of_sine, "+±+"),
    "sine times cosine": (_sine_times_cosine, "+++"),
    "amplitude": (_amplitude, "++"),
    "tangent": (_tangent, "+±+"),
    "exponentials": (_exponentials, "++±+"),
    "hyperbolic": (_hyperbolic, "++±"),
    "logarithms": (_logarithms, "++++"),
    "growth": (_growth, "++"),
    "powers of roots": (_powers_of_roots, "++"),
    "inverse sine": (_inverse_sine, "++"),
    "integral of logarithm": (_integral_of_logarithm, "++±"),
    "area of circles": (_area_of_circles, "+++"),
    "rationalised": (_rationalised, "+++"),
    "roots": (_roots, "+++"),
    "power of e": (_power_of_e, "++"),
    "determinant": (_determinant, "±±±±"),
    "characteristic polynomial": (_characteristic_polynomial, "±±±±"),
    "inverse matrix": (_inverse_matrix, "+++"),
    "power series": (_power_series, "+"),
    "Taylor polynomial": (_taylor_polynomial, "+"),
    "sum to n": (_sum_to_n, "++"),
    "geometric sum": (_geometric_sum, "++"),
    "Laplace transform": (_laplace_transform, "+±++"),
    "damped": (_damped, "+±+"),
    **FAMILIES,
}
"""Generator of each kind of problem, and the signs of its arguments: `+`, or `±` for either sign."""
