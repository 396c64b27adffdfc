"""Polynomials with rational coefficients and square roots, compared exactly: `2\\sqrt{3}`, `x^2+5x+6`, `(x+2)(x+3)`.

Square roots of different square-free numbers are linearly independent over the rational numbers, and powers of
variables and of pi are independent of them, so the sum of such terms can be written in one way only: two expressions
are equal if and only if their terms are. What is not such a sum, or could be read in two ways, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

MAX_TERMS = 60
"""Terms of an expression, at any step."""
MAX_POWER = 12
"""An exponent."""
MAX_DEGREE = 24
"""The sum of exponents in a term."""
MAX_RADICAND = 10**8
"""Under a root: finding its square factors takes time by its root."""
MAX_BITS = 2048
"""Size of a coefficient."""

Term = tuple[int, tuple[tuple[str, int], ...]]
"""A square-free number under a root, and the powers of variables in alphabetical order."""
Sum = Mapping[Term, Fraction]
"""Coefficients by term; none of them 0."""

REMEMBERED = 1024
"""Texts that are remembered read: one reference is compared with several answers."""
ONE: Term = (1, ())
"""The term of a rational number."""
_TOKEN = re.compile(r"\s*(\d+|\\(?:frac|sqrt|cdot|times|pi)(?![A-Za-z])|[a-cf-hj-z]|[-+*/^(){}])\s*")
_TIMES = frozenset(("*", "\\cdot", "\\times"))
_CALLED = frozenset("fghpqr")
"""Letters that name functions before a bracket."""


class _Unclear(Exception):
    """This is no sum of such terms, or not clearly one."""


@lru_cache(maxsize=REMEMBERED)
def read(text: str) -> Sum | None:
    """The sum that a tidied text is; None where it is anything else, or too large.

    Args:
        text: tidied, and within the bounds.
    """
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        tokens.append(match[1])
        position = match.end()
    try:
        parser = _Parser(tokens)
        found = parser.sum()
        return found if parser.ended() else None
    except _Unclear:
        return None


def equal(answer: str, reference: str) -> bool | None:
    """Whether an answer is the reference; None where this cannot tell.

    Args:
        answer: tidied, and within the bounds. Of an equation that ends in a number, such as `2x = 3 + 4 = 7`, that
            number is the answer, if anything of it is: another one than the reference makes it wrong.
        reference: the same, but for equations.
    """
    expected = read(reference)
    if expected is None:
        return None
    _, equation, last = answer.rpartition("=")
    found = read(last)
    if found is None:
        return None
    if not equation:
        return found == expected
    return False if found != expected and found.keys() <= {ONE} else None


class _Parser:
    """Reads tokens by descent; the bounds on nesting bound its depth."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._at = 0

    def ended(self) -> bool:
        """Whether all is read."""
        return self._tokens[self._at] == ""

    def sum(self) -> Sum:
        """Products with signs before and between them."""
        total: Sum = {}
        sign = self._take("-", "+") or "+"
        while True:
            total = _added(total, self._product(), -1 if sign == "-" else 1)
            sign = self._take("-", "+")
            if not sign:
                return total

    def _product(self) -> Sum:
        product = self._power()
        divided = False
        while True:
            before, token = self._tokens[self._at - 1], self._tokens[self._at]
            if self._take(*_TIMES):
                product = _times(product, self._power())
            elif self._take("/"):
                product = _times(product, _inverse(self._power()))
                divided = True
            elif token in ("", "+", "-", ")", "}"):
                return product
            elif divided or token.isdecimal() or (before.isdecimal() and token == "\\frac"):
                raise _Unclear  # `1/2x`, `x2` and `2\frac{1}{2}` can be read in two ways
            elif token == "(" and before in _CALLED:
                raise _Unclear
            else:
                product = _times(product, self._power())

    def _power(self) -> Sum:
        base = self._atom()
        if not self._take("^"):
            return base
        braced = self._take("{")
        exponent = self._next()
        if not exponent.isdecimal() or (len(exponent) > 1 and not braced) or int(exponent) > MAX_POWER:
            raise _Unclear
        if braced:
            self._expect("}")
        if self._tokens[self._at] == "^":
            raise _Unclear
        result: Sum = {ONE: Fraction(1)}
        for _ in range(int(exponent)):
            result = _times(result, base)
        return result

    def _atom(self) -> Sum:
        token = self._next()
        if token.isdecimal():
            return {ONE: Fraction(int(token))} if int(token) else {}
        if token == "\\frac":
            return _times(self._braced(), _inverse(self._braced()))
        if token == "\\sqrt":
            return _root(self._braced())
        if token in ("(", "{"):
            inner = self.sum()
            self._expect(")" if token == "(" else "}")
            return inner
        if token.isalpha() or token == "\\pi":
            return {(1, ((token, 1),)): Fraction(1)}
        raise _Unclear

    def _braced(self) -> Sum:
        self._expect("{")
        inner = self.sum()
        self._expect("}")
        return inner

    def _next(self) -> str:
        token = self._tokens[self._at]
        if not token:
            raise _Unclear
        self._at += 1
        return token

    def _take(self, *tokens: str) -> str:
        token = self._tokens[self._at]
        if token not in tokens:
            return ""
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _Unclear


def _added(one: Sum, other: Sum, sign: int) -> Sum:
    total = dict(one)
    for term, coefficient in other.items():
        value = total.get(term, Fraction(0)) + sign * coefficient
        if value:
            total[term] = _bounded(value)
        else:
            total.pop(term, None)
    if len(total) > MAX_TERMS:
        raise _Unclear
    return total


def _times(one: Sum, other: Sum) -> Sum:
    if len(one) * len(other) > MAX_TERMS**2:
        raise _Unclear
    total: Sum = {}
    for (root, powers), coefficient in one.items():
        for (other_root, other_powers), other_coefficient in other.items():
            outside, inside = _square_free(root * other_root)
            term = (inside, _joined(powers, other_powers))
            total = _added(total, {term: coefficient * other_coefficient * outside}, 1)
    return total


def _joined(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    if not (one and other):
        return one or other
    powers = dict(one)
    for name, power in other:
        powers[name] = powers.get(name, 0) + power
    if sum(powers.values()) > MAX_DEGREE:
        raise _Unclear
    return tuple(sorted(powers.items()))


def _inverse(of: Sum) -> Sum:
    """1 over a single number or root."""
    if len(of) != 1:
        raise _Unclear
    [((root, powers), coefficient)] = of.items()
    if powers:
        raise _Unclear
    return {(root, ()): 1 / (coefficient * root)}


def _root(of: Sum) -> Sum:
    """The square root of a positive rational number."""
    if list(of) != [ONE] or of[ONE] < 0:
        raise _Unclear
    value = of[ONE]
    outside, inside = _square_free(value.numerator * value.denominator)
    return {(inside, ()): Fraction(outside, value.denominator)}


def _square_free(number: int) -> tuple[int, int]:
    """The root of the largest square that divides a positive number, and what is left."""
    if number > MAX_RADICAND:
        raise _Unclear
    outside, inside, factor = 1, number, 2
    while factor * factor <= inside:
        while inside % (factor * factor) == 0:
            inside //= factor * factor
            outside *= factor
        factor += 1
    return outside, inside


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise _Unclear
    return value
