"""Parse units: symbols, names in several languages, products, powers and quotients."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from itertools import product

from rewardstack_verifier.lexicon import units as lexicon
from rewardstack_verifier.lexicon.currencies import CURRENCIES
from rewardstack_verifier.lexicon.units import Row
from rewardstack_verifier.reading.lexer import LETTERS, NUMBER, Token
from rewardstack_verifier.reading.syntax import Unit

Meanings = tuple[Unit, ...]
"""The units that a name or symbol may mean; several if it is ambiguous."""

DIMENSIONLESS = Unit(Fraction(1), ())
"""The unit of a plain number."""
MAX_MEANINGS = 16
"""Maximum number of meanings of a product of ambiguous units; further meanings are dropped."""
MAX_WORDS = 3
"""Maximum number of words of a unit's name."""
_LEADING_POWERS = {word: power for power, words in lexicon.POWERS_BEFORE.items() for word in words.split()}
"""Powers by the word before a unit, such as "square"."""
_TRAILING_POWERS = {word: power for power, words in lexicon.POWERS_AFTER.items() for word in words.split()}
"""Powers by the word after a unit, such as "squared"."""
_ATTACHED_POWER_WORDS = ("quadrat", "kubik", "平方", "立方", "제곱", "세제곱")
"""Words of `_LEADING_POWERS` that may be joined to the unit: `Quadratmeter`."""
_ENDINGS = lexicon.ENDINGS.split()
_NOT_PLURALS = frozenset(lexicon.NOT_PLURALS.split())
_PER = frozenset(lexicon.PER.split())
_CLOSING = {"(": ")", "{": "}"}
_SMALL_POWERS = frozenset("123")


def multiply_units(unit: Unit, other: Unit, power: int = 1) -> Unit:
    """Return a unit times a power of another unit. As a factor, a degree Celsius counts as a kelvin."""
    dimensions = Counter(dict(unit.dimensions))
    for name, exponent in other.dimensions:
        dimensions[name] += exponent * power
    kept = tuple(sorted((name, exponent) for name, exponent in dimensions.items() if exponent))
    return Unit(unit.size * other.size**power, kept)


def units_by_name(name: str) -> Meanings:
    """Return the units that a symbol or name may mean; empty if it is not a unit.

    Args:
        name: a symbol, or a name in the singular or plural; `_` separates the words of a name.
    """
    symbols, names = _tables()
    lower = name.lower()
    found = symbols.get(name) or names.get(lower)
    if found or lower in _NOT_PLURALS:
        return found or ()
    singulars = (lower.removesuffix(ending) for ending in _ENDINGS if lower.endswith(ending) and len(lower) > 3)
    by_singular = (names[singular] for singular in singulars if singular in names)
    return next(by_singular, symbols.get(lower, ()) if len(lower) > 1 else ())


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
    meanings = reader.read_product()
    return meanings, reader.at if meanings else 0


class _Reader:
    """Parses a product of powers of units; `at` is the position of the first token that is not consumed."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def read_product(self) -> Meanings:
        """Parse units that are adjacent, or joined by signs and words such as "per"."""
        meanings = self._read_factor()
        while meanings:
            start = self.at
            power = self._read_operator()
            factor = self._read_factor()
            if not factor:
                self.at = start
                break
            meanings = _multiply_meanings(meanings, factor, power)
        return meanings

    def _read_operator(self) -> int:
        """Consume the sign or word between two units, if any; return the second unit's power: -1 or 1."""
        text = self._text()
        if text in ("/", "*", ".", "-") or text.lower() in _PER:
            self.at += 1
        return -1 if text == "/" or text.lower() in _PER else 1

    def _read_factor(self) -> Meanings:
        if self._text() == "frac":
            return self._read_fraction()
        if self._text() in _CLOSING:
            return self._read_group()
        start = self.at
        power_before = self._read_power_word(_LEADING_POWERS)
        meanings = self._read_name()
        if not meanings:
            self.at = start
            return ()
        # The dot of an abbreviation, as in `5 ft.`. Before a word it is a product sign.
        if self._text() == "." and not (self.at + 1 < len(self.tokens) and self._is_word(self.at + 1)):
            self.at += 1
        return _raise_to_power(meanings, power_before * self._read_power())

    def _read_group(self) -> Meanings:
        start, closing = self.at, _CLOSING.get(self._text(), "")
        self.at += 1
        meanings = self.read_product() if closing else ()
        if meanings and self._text() == closing:
            self.at += 1
            return _raise_to_power(meanings, self._read_power())
        self.at = start
        return ()

    def _read_fraction(self) -> Meanings:
        start = self.at
        self.at += 1
        numerator = self._read_group()
        denominator = self._read_group() if numerator else ()
        if not denominator:
            self.at = start
            return ()
        return _multiply_meanings(numerator, denominator, -1)

    def _read_name(self) -> Meanings:
        """Parse the longest unit name: several words, or one word, which may include a power (`Quadratmeter`)."""
        for token_count in range(MAX_WORDS, 0, -1):
            words = self.tokens[self.at : self.at + token_count]
            if token_count == 1 and self._is_preposition():
                return ()
            if len(words) == token_count and (token_count == 1 or all(word.kind == LETTERS for word in words)):
                meanings = _units_of_word("_".join(word.text for word in words))
                if meanings:
                    self.at += token_count
                    return meanings
        return ()

    def _is_preposition(self) -> bool:
        """Return whether the next token is the preposition "in", as in `5 g in total`.

        Before a word, "in" is taken as inches only if the word continues a unit: `in squared`, `in per second`.
        """
        if self._text() != "in" or self.at + 1 == len(self.tokens) or not self._is_word(self.at + 1):
            return False
        word = self.tokens[self.at + 1].text.lower()
        return word not in _PER and word not in _TRAILING_POWERS

    def _read_power(self) -> int:
        """Parse the exponent after a unit: `^2`, `^{-1}`, `2` in `m2`, "squared"; 1 if there is none."""
        rest = [token.text for token in self.tokens[self.at : self.at + 5]]
        text = "".join(rest)
        for pattern, token_count in (("^{-%s}", 5), ("^{%s}", 4), ("^-%s", 3), ("^%s", 2)):
            digit = next((digit for digit in _SMALL_POWERS if text.startswith(pattern % digit)), "")
            if digit and len(rest) >= token_count and rest[token_count - 1] in (digit, "}"):
                self.at += token_count
                return -int(digit) if "-" in pattern else int(digit)
        if rest and rest[0] in ("2", "3") and self.tokens[self.at].kind == NUMBER and not self.tokens[self.at].spaced:
            self.at += 1
            return int(rest[0])
        return self._read_power_word(_TRAILING_POWERS)

    def _read_power_word(self, powers: dict[str, int]) -> int:
        """Consume a word such as "square" or "sq.", if any, and return its power; 1 if there is none."""
        power = powers.get(self._text().lower(), 0)
        self.at += power > 0
        self.at += power > 0 and self._text() == "."
        return power or 1

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _is_word(self, at: int) -> bool:
        return self.tokens[at].kind == LETTERS


def _units_of_word(word: str) -> Meanings:
    """Return the meanings of a name that may have a power as a prefix: `Quadratmeter`."""
    prefix = next((prefix for prefix in _ATTACHED_POWER_WORDS if word.lower().startswith(prefix)), "")
    by_prefix = _raise_to_power(units_by_name(word[len(prefix) :]), _LEADING_POWERS[prefix]) if prefix else ()
    return units_by_name(word) or by_prefix


def _raise_to_power(meanings: Meanings, power: int) -> Meanings:
    return meanings if power == 1 else tuple(multiply_units(DIMENSIONLESS, unit, power) for unit in meanings)


def _multiply_meanings(meanings: Meanings, factor: Meanings, power: int) -> Meanings:
    """Return all meanings of a unit times a power of another unit, at most `MAX_MEANINGS`."""
    products = [multiply_units(unit, other, power) for unit, other in product(meanings, factor)]
    return tuple(dict.fromkeys(products))[:MAX_MEANINGS]


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, Meanings], dict[str, Meanings]]:
    """Return the units by symbol and by name."""
    symbols: dict[str, Meanings] = {}
    names: dict[str, Meanings] = {}
    for row in lexicon.UNITS:
        unit = _make_unit(row, symbols)
        for table, words in ((symbols, row.symbols), (names, row.names)):
            for word in words.split():
                table[word] = (*table.get(word, ()), unit)
                for prefix in row.prefixes:
                    name, size = lexicon.PREFIXES[prefix]
                    prefixed = (name if table is names else prefix) + word
                    table.setdefault(prefixed, (multiply_units(Unit(_number(size), ()), unit),))
    for code, signs, currency_names, hundredths, tenths in CURRENCIES:
        currency = Unit(Fraction(1), ((code, 1),))
        for unit, table, words in (
            (currency, symbols, f"{code} {signs}"),
            (currency, names, currency_names),
            (multiply_units(Unit(Fraction(1, 100), ()), currency), names, hundredths),
            (multiply_units(Unit(Fraction(1, 10), ()), currency), names, tenths),
        ):
            for word in words.split():
                table[word] = (*table.get(word, ()), unit)
    return symbols, names


def _make_unit(row: Row, symbols: dict[str, Meanings]) -> Unit:
    """Return the unit of a row, with its size computed from earlier rows."""
    if row.size.startswith("="):
        return Unit(Fraction(1), ((row.size[1:], 1),))
    size, *factors = row.size.split()
    unit = Unit(_number(size), ())
    for factor in factors:
        symbol, _, power = factor.partition("^")
        unit = unit if symbol == "1" else multiply_units(unit, symbols[symbol][0], int(power or 1))
    return Unit(unit.size, unit.dimensions, Fraction(row.zero))


def _number(text: str) -> Fraction:
    """Parse a number in the table of units: `1609.344`, `10^-3` or `5/9`."""
    numerator, _, denominator = text.partition("/")
    base, _, exponent = numerator.partition("^")
    return Fraction(base) ** int(exponent or 1) / Fraction(denominator or 1)


def is_currency(meanings: Meanings) -> bool:
    """Return whether any meaning is a currency or contains one, as dollars per kilogram do.

    Only the dimensions of currencies have upper-case names: their codes, such as `USD`.
    """
    return any(name.isupper() for unit in meanings for name, _ in unit.dimensions)
