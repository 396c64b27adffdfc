"""Write formulas in LaTeX (`write`), in one of the styles that textbooks and models use."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from benchmarks.formulas import FUNCTIONS, MINUS, Formula

NAMES = {"pi": r"\pi", "lambda": r"\lambda", "infinity": r"\infty"}
SUM, PRODUCT, POWER, ATOM = range(4)
"""Operator precedence of a formula, lowest first."""


class Style(NamedTuple):
    """How formulas are written.

    Args:
        fraction: command for fractions.
        brackets: opening and closing bracket.
        times: separator of factors, except before a digit or a fraction (a dot) and after a number (a space).
        are_calls_bracketed: whether to write `\\sin(x)` instead of `\\sin x` where both are possible.
        names: LaTeX by name, for names that need a command or that the style replaces.
    """

    fraction: str = r"\frac"
    brackets: tuple[str, str] = ("(", ")")
    times: str = " "
    are_calls_bracketed: bool = False
    names: Mapping[str, str] = NAMES


def any_style(rng: random.Random, names: Mapping[str, str]) -> Style:
    """Return a random style.

    Args:
        rng: chooses the style.
        names: LaTeX for the constants, such as `C_1` for `C`.
    """
    brackets = rng.choice((("(", ")"), ("(", ")"), (r"\left(", r"\right)")))
    return Style(
        rng.choice((r"\frac", r"\frac", r"\dfrac")),
        brackets,
        rng.choice((" ", " ", r" \, ", r" \cdot ")),
        rng.random() < 0.5,
        {**NAMES, **names},
    )


def write(of: Formula, style: Style) -> str:
    """Return a formula as LaTeX."""
    return _written(of, style)[0]


def _written(of: Formula, style: Style) -> tuple[str, int]:
    """Return the LaTeX of a formula and its precedence."""
    return _WRITERS[of.head](of.of, style) if of.head in _WRITERS else _call(of, style)


def _bracketed(of: Formula, style: Style, least: int) -> str:
    """Return the LaTeX of a formula, in brackets if its precedence is below `least`."""
    text, precedence = _written(of, style)
    return text if precedence >= least else style.brackets[0] + text + style.brackets[1]


def _sum(of: tuple[Any, ...], style: Style) -> tuple[str, int]:
    text = write(of[0], style)
    for term in of[1:]:
        more = write(term, style)
        text += f" - {more[1:].lstrip()}" if more.startswith("-") else f" + {more}"
    return text, SUM


def _product(of: tuple[Any, ...], style: Style) -> tuple[str, int]:
    sign, factors = ("-", of[1:]) if of[0] == MINUS else ("", of)
    text = _bracketed(factors[0], style, SUM if sign == "" and factors[0].head == "number" else PRODUCT)
    for before, factor in pairwise(factors):
        more = _bracketed(factor, style, PRODUCT)
        if (
            before.head in FUNCTIONS
            and before.head not in ("abs", "sqrt", "factorial")
            and factor.head not in FUNCTIONS
        ):
            text = text if text.endswith(style.brackets[1]) else f"{style.brackets[0]}{text}{style.brackets[1]}"
        digits = more[0].isdigit() or more.startswith((r"\frac", r"\dfrac"))
        text += (r" \cdot " if digits else style.times if before.head != "number" else " ") + more
    return sign + text, SUM if sign else PRODUCT


def _power(of: tuple[Any, ...], style: Style) -> tuple[str, int]:
    base, exponent = of
    raised = f"^{{{write(exponent, style)}}}"
    if base.head in ("sin", "cos", "tan", "sec") and exponent.head == "number":
        text, precedence = _call(base, style)
        return text.replace(f"\\{base.head}", f"\\{base.head}{raised}", 1), precedence
    return _bracketed(base, style, ATOM) + raised, POWER


def _call(of: Formula, style: Style) -> tuple[str, int]:
    inner = write(of.of[0], style)
    if of.head == "sqrt":
        return f"\\sqrt{{{inner}}}", ATOM
    if of.head == "abs":
        return f"|{inner}|", ATOM
    if of.head == "factorial":
        return f"{_bracketed(of.of[0], style, ATOM)}!", POWER
    plain = of.of[0].head in ("name", "number", "quotient") or all(
        one.head in ("name", "number") for one in of.of[0].of if isinstance(one, Formula)
    )
    if style.are_calls_bracketed or not plain or of.of[0].head == "sum" or inner.startswith("-"):
        inner = style.brackets[0] + inner + style.brackets[1]
        return f"\\{of.head}{inner}", PRODUCT
    return f"\\{of.head} {inner}", PRODUCT


def _series(of: tuple[Any, ...], style: Style) -> tuple[str, int]:
    term, index, first, last = of
    return f"\\sum_{{{write(index, style)}={write(first, style)}}}^{{{write(last, style)}}} " + _bracketed(
        term, style, PRODUCT
    ), SUM


def _rows(of: tuple[Any, ...], style: Style) -> tuple[str, int]:
    a, b, c, d = (write(one, style) for one in of)
    return f"\\begin{{vmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{vmatrix}}", ATOM


_WRITERS: dict[str, Callable[[tuple[Any, ...], Style], tuple[str, int]]] = {
    "number": lambda of, style: (str(of[0]), SUM if of[0] < 0 else ATOM),
    "name": lambda of, style: (style.names.get(of[0], of[0]), ATOM),
    "decimal": lambda of, style: (f"{of[0].of[0] / 10 ** of[1]:.{of[1]}f}", ATOM),
    "sum": _sum,
    "product": _product,
    "quotient": lambda of, style: (f"{style.fraction}{{{write(of[0], style)}}}{{{write(of[1], style)}}}", PRODUCT),
    "power": _power,
    "series": _series,
    "determinant": _rows,
}
