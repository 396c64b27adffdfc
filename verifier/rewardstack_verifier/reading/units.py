"""Parse units: symbols, names in several languages, products, powers and quotients."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import product

from rewardstack_verifier.lexicon.currencies import CURRENCIES
from rewardstack_verifier.lexicon.units import (
    ENDINGS,
    NO_UNITS,
    PER,
    POWERS_BEFORE,
    POWERS_BEHIND,
    PREFIXES,
    UNITS,
    Row,
)
from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token
from rewardstack_verifier.reading.syntax import Unit

Meanings = tuple[Unit, ...]
"""The units that a name or symbol may mean; several if it is ambiguous."""

ONE = Unit(Fraction(1), ())
MAX_MEANINGS = 16
"""Maximum number of meanings of a product of ambiguous units; further meanings are dropped."""
MAX_WORDS = 3
"""Maximum words of a unit's name."""
_BEFORE = {word: power for power, words in POWERS_BEFORE.items() for word in words.split()}
_BEHIND = {word: power for power, words in POWERS_BEHIND.items() for word in words.split()}
_PREFIX_POWERS = tuple(word for word in _BEFORE if word in ("quadrat", "kubik", "平方", "立方", "제곱", "세제곱"))
_ENDINGS = ENDINGS.split()
_NO_UNITS = frozenset(NO_UNITS.split())
_PER = frozenset(PER.split())
_CLOSING = {"(": ")", "{": "}"}
_SMALL_POWERS = frozenset("123")


def multiply_units(one: Unit, other: Unit, power: int = 1) -> Unit:
    """Return a unit times a power of another unit; zero points of scales are dropped."""
    dimensions = Counter(dict(one.dimensions))
    for name, exponent in other.dimensions:
        dimensions[name] += exponent * power
    kept = tuple(sorted((name, exponent) for name, exponent in dimensions.items() if exponent))
    return Unit(one.size * other.size**power, kept)


def units_by_name(name: str) -> Meanings:
    """Return the units that a symbol or name may mean; empty if it is not a unit.

    Args:
        name: a symbol, or a name in the singular or plural; `_` separates the words of a name.
    """
    symbols, names = _tables()
    small = name.lower()
    found = symbols.get(name) or names.get(small)
    if found or small in _NO_UNITS:
        return found or ()
    singulars = (small.removesuffix(ending) for ending in _ENDINGS if small.endswith(ending) and len(small) > 3)
    return next((names[one] for one in singulars if one in names), symbols.get(small, ()) if len(small) > 1 else ())


def currencies_by_sign(sign: str) -> Meanings:
    """Return the currencies that a sign or code may mean; empty if it is not a currency."""
    meanings = _tables()[0].get(sign, ())
    return meanings if is_currency(meanings) else ()


def parse_unit(tokens: list[Token]) -> tuple[Meanings, int]:
    """Parse the unit at the beginning of tokens.

    Returns:
        The meanings of the unit, and its number of tokens; an empty tuple and 0 if there is no unit.
    """
    reader = _Reader(tokens)
    meanings = reader.product()
    return meanings, reader.at if meanings else 0


class _Reader:
    """Parses a product of powers of units; `at` is the position of the first token that is not consumed."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def product(self) -> Meanings:
        """Parse units that are adjacent, or joined by signs and words such as "per"."""
        meanings = self._factor()
        while meanings:
            before, inverse = self.at, self._divides()
            factor = self._factor()
            if not factor:
                self.at = before
                break
            meanings = _multiply_meanings(meanings, factor, -1 if inverse else 1)
        return meanings

    def _divides(self) -> bool:
        """Consume the sign or word between two units, if any, and return whether it is a division."""
        text = self._text()
        if text in ("/", "*", ".", "-") or text.lower() in _PER:
            self.at += 1
        return text == "/" or text.lower() in _PER

    def _factor(self) -> Meanings:
        if self._text() == "frac":
            return self._fraction()
        if self._text() in _CLOSING:
            return self._group()
        start = self.at
        before = self._word_of(_BEFORE)
        meanings = self._name()
        if not meanings:
            self.at = start
            return ()
        if self._text() == "." and not (self.at + 1 < len(self.tokens) and self._is_letter(self.at + 1)):
            self.at += 1
        power = before * self._power()
        return meanings if power == 1 else tuple(multiply_units(ONE, one, power) for one in meanings)

    def _group(self) -> Meanings:
        start, closing = self.at, _CLOSING.get(self._text(), "")
        self.at += 1
        meanings = self.product() if closing else ()
        if meanings and self._text() == closing:
            self.at += 1
            power = self._power()
            return meanings if power == 1 else tuple(multiply_units(ONE, one, power) for one in meanings)
        self.at = start
        return ()

    def _fraction(self) -> Meanings:
        start = self.at
        self.at += 1
        over = self._group()
        under = self._group() if over else ()
        if not under:
            self.at = start
            return ()
        return _multiply_meanings(over, under, -1)

    def _name(self) -> Meanings:
        """Parse the longest unit name: several words, or one word, which may include a power (`Quadratmeter`)."""
        for length in range(MAX_WORDS, 0, -1):
            words = self.tokens[self.at : self.at + length]
            if length == 1 and self._is_preposition():
                return ()
            if len(words) == length and (length == 1 or all(word.kind == LETTERS for word in words)):
                meanings = _units_of_word("_".join(word.text for word in words))
                if meanings:
                    self.at += length
                    return meanings
        return ()

    def _is_preposition(self) -> bool:
        """Return whether the next token is the word "in" before another word, not inches: `5 g in total`."""
        return self._text() == "in" and self.at + 1 < len(self.tokens) and self._is_letter(self.at + 1)

    def _power(self) -> int:
        """Parse the exponent after a unit: `^2`, `^{-1}`, `2` in `m2`, "squared"; 1 if there is none."""
        rest = [token.text for token in self.tokens[self.at : self.at + 5]]
        text = "".join(rest)
        for pattern, length in (("^{-%s}", 5), ("^{%s}", 4), ("^-%s", 3), ("^%s", 2)):
            digit = next((digit for digit in _SMALL_POWERS if text.startswith(pattern % digit)), "")
            if digit and len(rest) >= length and rest[length - 1] in (digit, "}"):
                self.at += length
                return -int(digit) if "-" in pattern else int(digit)
        if rest and rest[0] in ("2", "3") and self.tokens[self.at].kind == NUMBER and not self.tokens[self.at].spaced:
            self.at += 1
            return int(rest[0])
        return self._word_of(_BEHIND)

    def _word_of(self, powers: dict[str, int]) -> int:
        power = powers.get(self._text().lower(), 0)
        if power:
            self.at += 1
            if self._text() == ".":
                self.at += 1
        return power or 1

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _is_letter(self, at: int) -> bool:
        return self.tokens[at].kind == LETTERS


def _units_of_word(word: str) -> Meanings:
    """Return the meanings of a name that may have a power as a prefix: `Quadratmeter`."""
    found = units_by_name(word)
    if found:
        return found
    prefix = next((prefix for prefix in _PREFIX_POWERS if word.lower().startswith(prefix)), "")
    return (
        tuple(multiply_units(ONE, one, _BEFORE[prefix]) for one in units_by_name(word[len(prefix) :])) if prefix else ()
    )


def _multiply_meanings(meanings: Meanings, factor: Meanings, power: int) -> Meanings:
    pairs = [multiply_units(one, other, power) for one, other in product(meanings, factor)]
    return tuple(dict.fromkeys(pairs))[:MAX_MEANINGS]


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, Meanings], dict[str, Meanings]]:
    """Return the units by symbol and by name."""
    symbols: dict[str, Meanings] = {}
    names: dict[str, Meanings] = {}
    for row in UNITS:
        one = _make_unit(row, symbols)
        for table, words, called in ((symbols, row.symbols, _symbol), (names, row.names, _name)):
            for word in words.split():
                table[word] = (*table.get(word, ()), one)
                for prefix in row.prefixes:
                    size = _number(PREFIXES[prefix][1])
                    table.setdefault(called(prefix, word), (multiply_units(Unit(size, ()), one),))
    for code, signs, called_, hundredths, tenths in CURRENCIES:
        currency = Unit(Fraction(1), ((code, 1),))
        for one, table, words in (
            (currency, symbols, f"{code} {signs}"),
            (currency, names, called_),
            (multiply_units(Unit(Fraction(1, 100), ()), currency), names, hundredths),
            (multiply_units(Unit(Fraction(1, 10), ()), currency), names, tenths),
        ):
            for word in words.split():
                table[word] = (*table.get(word, ()), one)
    return symbols, names


def _make_unit(row: Row, symbols: dict[str, Meanings]) -> Unit:
    """Return the unit of a row, with its size computed from earlier rows."""
    if row.size.startswith("="):
        return Unit(Fraction(1), ((row.size[1:], 1),))
    size, *factors = row.size.split()
    one = Unit(_number(size), ())
    for factor in factors:
        symbol, _, power = factor.partition("^")
        one = one if symbol == "1" else multiply_units(one, symbols[symbol][0], int(power or 1))
    return Unit(one.size, one.dimensions, Fraction(row.zero))


def _number(text: str) -> Fraction:
    over, _, under = text.partition("/")
    base, _, exponent = over.partition("^")
    return Fraction(base) ** int(exponent or 1) / Fraction(under or 1)


def _symbol(prefix: str, symbol: str) -> str:
    return prefix + symbol


def _name(prefix: str, name: str) -> str:
    return PREFIXES[prefix][0] + name


def is_currency(meanings: Meanings) -> bool:
    """Return whether a meaning of a unit is or contains a currency."""
    return any(name.isupper() for one in meanings for name, _ in one.dimensions)
