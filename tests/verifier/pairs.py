"""Pairs of a reference and an answer whose verdict is known from how they are made: `pairs`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

Made = tuple[str, str]


class Pair(NamedTuple):
    """A reference and an answer.

    Args:
        transformation: how the answer is made of the reference.
        right: whether it is still the answer.
    """

    reference: str
    answer: str
    transformation: str
    right: bool


def pairs(seed: int, each: int) -> Iterator[Pair]:
    """`each` pairs of every transformation.

    Args:
        seed: the same seed gives the same pairs.
        each: how many.
    """
    numbers = random.Random(seed)
    for right, table in ((True, RIGHT), (False, WRONG)):
        for transformation, make in table.items():
            for _ in range(each):
                reference, answer = make(numbers)
                yield Pair(reference, answer, transformation, right)


def _integer(numbers: random.Random) -> int:
    return numbers.randint(1_000, 9_999_999)


def _fraction(numbers: random.Random) -> Fraction:
    while (value := Fraction(numbers.randint(1, 40), numbers.randint(2, 40))).denominator == 1:
        pass
    return value


def _latex(value: Fraction) -> str:
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _two(numbers: random.Random) -> tuple[int, int]:
    one, other = numbers.sample(range(2, 60), 2)
    return one, other


def _square_free(numbers: random.Random) -> int:
    return numbers.choice((2, 3, 5, 6, 7, 10, 11, 13))


def _of_integer(write: Callable[[int], str]) -> Callable[[random.Random], Made]:
    def make(numbers: random.Random) -> Made:
        value = _integer(numbers)
        return str(value), write(value)

    return make


def _of_fraction(write: Callable[[Fraction], str]) -> Callable[[random.Random], Made]:
    def make(numbers: random.Random) -> Made:
        value = _fraction(numbers)
        return _latex(value), write(value)

    return make


def _of_two(reference: str, answer: str) -> Callable[[random.Random], Made]:
    """Texts in which A < B stand for two integers, and S, P, D for their sum, product and difference."""

    def make(numbers: random.Random) -> Made:
        small, large = sorted(_two(numbers))
        values = {"A": small, "B": large, "S": small + large, "P": small * large, "D": large - small}
        made = []
        for text in (reference, answer):
            for letter, value in values.items():
                text = text.replace(f"<{letter}>", str(value))
            made.append(text)
        return made[0], made[1]

    return make


def _mixed(numbers: random.Random) -> Made:
    value, whole = _fraction(numbers) % 1 or Fraction(1, 2), numbers.randint(1, 9)
    return _latex(whole + value), f"{whole} {value.numerator}/{value.denominator}"


def _root(numbers: random.Random) -> Made:
    factor, radicand = numbers.randint(2, 9), _square_free(numbers)
    return f"{factor}\\sqrt{{{radicand}}}", f"\\sqrt{{{factor * factor * radicand}}}"


def _other_root(numbers: random.Random) -> Made:
    factor, radicand = numbers.randint(2, 9), _square_free(numbers)
    return f"{factor}\\sqrt{{{radicand}}}", f"\\sqrt{{{factor * factor * radicand + 1}}}"


def _coarse(numbers: random.Random) -> Made:
    value = numbers.randint(1, 6) + Fraction(numbers.randint(1, 6), 7)
    return _latex(value), f"{float(value):.3f}"


def _anagram(numbers: random.Random) -> Made:
    one, other = numbers.choice((("listen", "silent"), ("east", "seat"), ("odd", "dod"), ("stop", "pots")))
    return f"\\text{{{one}}}", f"\\text{{{other}}}"


def _small(numbers: random.Random) -> Made:
    exponent = numbers.randint(8, 30)
    return f"10^{{-{exponent}}}", f"{numbers.randint(2, 9)} \\times 10^{{-{exponent}}}"


def _full_width(value: int) -> str:
    return "".join(chr(ord(digit) - ord("0") + ord("\uff10")) for digit in str(value))


RIGHT: dict[str, Callable[[random.Random], Made]] = {
    "commas between thousands": _of_integer(lambda value: f"{value:,}"),
    "thin spaces between thousands": _of_integer(lambda value: f"{value:,}".replace(",", "\\,")),
    "MATH's spaces between thousands": _of_integer(lambda value: f"{value:,}".replace(",", ",\\!")),
    "a plus sign": _of_integer(lambda value: f"+{value}"),
    "zeros behind the point": _of_integer(lambda value: f"{value}.00"),
    "a dollar sign": _of_integer(lambda value: f"\\${value}"),
    "full-width digits": _of_integer(_full_width),
    "a unit as text": _of_integer(lambda value: f"{value} \\text{{ apples}}"),
    "a unit in words": _of_integer(lambda value: f"{value} weeks"),
    "degrees": _of_integer(lambda value: f"{value}^\\circ"),
    "a name": _of_integer(lambda value: f"x = {value}"),
    "a fraction in display size": _of_fraction(lambda value: _latex(value).replace("frac", "dfrac")),
    "a slash": _of_fraction(lambda value: str(value)),
    "a fraction not reduced": _of_fraction(lambda value: f"\\frac{{{value.numerator * 3}}}{{{value.denominator * 3}}}"),
    "both signs turned": _of_fraction(lambda value: f"\\frac{{{-value.numerator}}}{{{-value.denominator}}}"),
    "a mixed number on one line": _mixed,
    "a factor under the root": _root,
    "a product multiplied out": _of_two("(x+<A>)(x+<B>)", "x^2+<S>x+<P>"),
    "terms exchanged": _of_two("<A>x+<B>", "<B>+<A>x"),
    "an equation multiplied": _of_two("<A>x+<B>y=1", "2 \\cdot <A>x+2 \\cdot <B>y=2"),
    "a set in another order": _of_two("\\{<A>,<B>\\}", "\\{<B>,<A>\\}"),
    "solutions in another order": _of_two("x = <A> \\text{ or } x = <B>", "x = <B> \\text{ or } x = <A>"),
    "points in another order": _of_two("(<A>,<B>), (1,1)", "(1,1), (<A>,<B>)"),
    "an inequality for an interval": _of_two("[<A>, <B>)", "<A> \\le x < <B>"),
    "a union in another order": _of_two("[1,<A>]\\cup[<B>,99]", "[<B>,99]\\cup[1,<A>]"),
    "other brackets of a matrix": _of_two(
        "\\begin{pmatrix} <A> & 1 \\\\ <B> & 2 \\end{pmatrix}", "\\begin{bmatrix} <A> & 1 \\\\ <B> & 2 \\end{bmatrix}"
    ),
    "both signs written out": _of_two("<A> \\pm \\sqrt{<B>}", "<A> + \\sqrt{<B>}, <A> - \\sqrt{<B>}"),
    "a percentage as a fraction": _of_two("<A>\\%", "\\frac{<A>}{100}"),
    "a column for a point": _of_two("(<A>,<B>)", "\\begin{pmatrix} <A> \\\\ <B> \\end{pmatrix}"),
    "a converted unit": _of_two("<A> \\text{ m}", "<A>00 \\text{ cm}"),
    "a distance for an interval": _of_two("(-<A>, <A>)", "|x| < <A>"),
    "the same answer twice": _of_two("\\frac{<A>}{<B>}", "\\frac{<A>}{<B>} \\text{ or } \\frac{<A>0}{<B>0}"),
    "a ratio not reduced": _of_two("<A>:<B>1", "<A>0:<B>10"),
}
WRONG: dict[str, Callable[[random.Random], Made]] = {
    "one more": _of_integer(lambda value: str(value + 1)),
    "the sign turned": _of_integer(lambda value: str(-value)),
    "the last digit missing": _of_integer(lambda value: str(value // 10)),
    "a fraction upside down": _of_fraction(lambda value: _latex(1 / value)),
    "a decimal of three digits": _coarse,
    "two numbers side by side": _of_two("<S>", "<A> <B>"),
    "another root": _other_root,
    "a sign within a product": _of_two("(x+<A>)(x+<B>)", "x^2-<S>x+<P>"),
    "another right side": _of_two("<A>x+<B>y=1", "<A>x+<B>y=2"),
    "a list in another order": _of_two("<A>,<B>", "<B>,<A>"),
    "a point in another order": _of_two("(<A>,<B>)", "(<B>,<A>)"),
    "a set for a point": _of_two("(<A>,<B>)", "\\{<A>,<B>\\}"),
    "a member missing": _of_two("<A>, <B>, 99", "<A>, <B>"),
    "a member too many": _of_two("<A>, <B>", "<A>, <B>, 99"),
    "two answers for one": _of_two("<A>", "<A> \\text{ or } <B>"),
    "a closed end": _of_two("(<A>, <B>)", "[<A>, <B>)"),
    "another end": _of_two("[<A>, <B>]", "[<A>, <S>]"),
    "a matrix transposed": _of_two(
        "\\begin{pmatrix} <A> & 1 \\\\ <B> & 2 \\end{pmatrix}", "\\begin{pmatrix} <A> & <B> \\\\ 1 & 2 \\end{pmatrix}"
    ),
    "one of both signs": _of_two("<A> \\pm \\sqrt{<B>}", "<A> + \\sqrt{<B>}"),
    "a hundred times the percentage": _of_two("<A>", "<A>00\\%"),
    "another unit": _of_two("<A> \\text{ cm}", "<A> \\text{ km}"),
    "a letter behind the number": _of_two("<A>", "<A>t"),
    "a row for a column": _of_two(
        "\\begin{pmatrix} <A> \\\\ <B> \\end{pmatrix}", "\\begin{pmatrix} <A> & <B> \\end{pmatrix}"
    ),
    "a ratio of three in another order": _of_two("1:<A>:<B>", "1:<B>:<A>"),
    "a false equation": _of_two("<B>", "<A> = <B>"),
    "an equation not solved": _of_two("x = <A>", "2x = 2 \\cdot <A>"),
    "another base": _of_two("<P>_{10}", "<P>_{12}"),
    "letters exchanged": _anagram,
    "a small number": _small,
}
