"""Units behind, or before, a quantity (`measure`), and how many of one another is (`ratio`)."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from rewardstack_rules.mathematics.notation import unformatted

_UNITS: dict[str, tuple[str, str, str]] = {
    "mm": ("mm millimeter millimetre", "length", "1/1000"),
    "cm": ("cm centimeter centimetre", "length", "1/100"),
    "dm": ("dm decimeter decimetre", "length", "1/10"),
    "m": ("m meter metre", "length", "1"),
    "km": ("km kilometer kilometre", "length", "1000"),
    "in": ("in inch inche", "length", "0.0254"),
    "ft": ("ft foot feet", "length", "0.3048"),
    "yd": ("yd yard", "length", "0.9144"),
    "mi": ("mi mile", "length", "1609.344"),
    "mg": ("mg milligram", "mass", "1/1000"),
    "g": ("g gram", "mass", "1"),
    "kg": ("kg kilogram", "mass", "1000"),
    "oz": ("oz ounce", "mass", "28.349523125"),
    "lb": ("lb pound", "mass", "453.59237"),
    "ml": ("ml milliliter millilitre", "length^3", "1/1000000"),
    "l": ("l liter litre", "length^3", "1/1000"),
    "cup": ("cup", "length^3", "0.0002365882365"),
    "pt": ("pt pint", "length^3", "0.000473176473"),
    "qt": ("qt quart", "length^3", "0.000946352946"),
    "gal": ("gal gallon", "length^3", "0.003785411784"),
    "ms": ("ms millisecond", "time", "1/1000"),
    "s": ("s sec second", "time", "1"),
    "min": ("min minute", "time", "60"),
    "h": ("h hr hour", "time", "3600"),
    "day": ("day", "time", "86400"),
    "week": ("week wk", "time", "604800"),
    "month": ("month", "months", "1"),
    "year": ("year yr", "months", "12"),
    "dozen": ("dozen", "count", "12"),
    "cent": ("cent", "dollars", "1/100"),
    "dollar": ("dollar buck usd", "dollars", "1"),
    "euro": ("euro eur", "euros", "1"),
    "rupee": ("rupee inr", "rupees", "1"),
    "gbp": ("gbp", "sterling", "1"),
    "yen": ("yen jpy", "yen", "1"),
    "j": ("joule", "energy", "1"),
    "kj": ("kilojoule", "energy", "1000"),
    "ev": ("electronvolt", "energy", "1.602176634e-19"),
    "kev": ("kiloelectronvolt", "energy", "1.602176634e-16"),
    "cal": ("calorie", "energy", "4.184"),
    "kcal": ("kilocalorie", "energy", "4184"),
    "n": ("newton", "force", "1"),
    "kn": ("kilonewton", "force", "1000"),
    "w": ("watt", "power", "1"),
    "kw": ("kilowatt", "power", "1000"),
    "pa": ("pascal", "pressure", "1"),
    "kpa": ("kilopascal", "pressure", "1000"),
    "v": ("volt", "voltage", "1"),
    "hz": ("hertz", "frequency", "1"),
    "khz": ("kilohertz", "frequency", "1000"),
    "kelvin": ("kelvin k", "kelvin", "1"),
    "celsius": ("celsius", "celsius", "1"),
    "fahrenheit": ("fahrenheit", "fahrenheit", "1"),
}
"""Names in the singular, what is measured, and how much of it, by symbol."""
_SYMBOLS = {name: symbol for symbol, (names, *_) in _UNITS.items() for name in names.split()}
_QUOTIENTS = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h"}
_SHORT = "|".join(sorted((name for name in _SYMBOLS if len(name) == 2), key=len))
NAMES = "|".join(
    sorted(
        {f"{name}s?" for name in _SYMBOLS if len(name) > 2}
        | {"inches", "cm", "mm", "km", "kg", "mg", "ml", "mL", "mph"}
        | {"ft", "lbs?", "oz", "hrs?"},
        key=len,
        reverse=True,
    )
)
"""A pattern of the names that units have in prose."""
IN_PROSE = (
    rf"[*$]{{0,2}}[ -]?(?:\\text\{{ ?)?(?P<unit>(?:(?:square|cubic|sq\.?|cu\.?) )?(?:{NAMES}|[mgL])(?![A-Za-z'])"
    rf"(?:\s?(?:\^?[23](?!\d)|[²³]))?(?:\s?(?:/|per)\s?(?:{NAMES}|[sh])(?![A-Za-z'])[²]?)?|¢)"
)
"""A pattern of the unit right behind a number or formula of a text."""
_POWERS = {"square": 2, "sq": 2, "squared": 2, "^2": 2, "^{2}": 2, "cubic": 3, "cu": 3, "cubed": 3, "^3": 3, "^{3}": 3}

_IN_TEXT = r"\s*/?\s*\\text\{[^{}]*[A-Za-z][^{}]*\}(?:\s*\^\s*\{?-?\d\}?)?"
_IN_WORDS = (
    rf"(?:\s+(?:[A-Za-z]{{3,}}|of(?=\s(?:the|an?|his|her|its|their|all)\b)|{_SHORT}|sq|cu|[mgshL])|(?<=\d)(?:{_SHORT}))\b\.?"
    r"(?:[ /-]+(?!(?:and|or)\b)[A-Za-z']+\.?)*(?:\s*\^\s*\{?\d\}?)?"
)
_MEASURE = re.compile(rf"(.*?(?:[\d}})]|\\pi))((?:{_IN_TEXT})+|{_IN_WORDS})")
_MONEY = re.compile(r"([+-]?\s*)\\text\{(dollar|euro|rupee|gbp|yen)\}\s*(.+)")
_INVERSE = re.compile(r"[ .]*\b([a-z]+) ?\^ ?\{?-(\d)\}?")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+\.?)")
_QUANTITIES = re.compile(rf"{_QUANTITY.pattern}(?:(?: |, ?| ?and |, and ){_QUANTITY.pattern}){{1,4}}")
_BOUND = re.compile(r"\b(?:or|is|not|if|least|most|wrong|incorrect)\b")
_VARIABLE = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_BESIDE = re.compile(
    r" (?:long|wide|high|tall|deep|thick|old|away|apart|each|every|in|total|altogether|left|more|later|from|of"
    r"|to|for)\b.*"
)
"""What stands behind a unit and is none: `5 cm long`."""
_POUNDS = {"gbp", "lb"}
"""`£20` is 20 pounds."""


def measure(text: str) -> tuple[str, str]:
    """A tidied text without its unit, and the unit's symbol or, where it has none, its words; empty without a unit."""
    money = _MONEY.fullmatch(text)
    if money is not None:
        counted = _MEASURE.fullmatch(money[3])  # $18 per day
        return money[1] + (counted[1] if counted else money[3]), money[2]
    match = _MEASURE.fullmatch(text)
    if match is None or _BOUND.search(match[2]):
        return text, ""
    if len(match[2].strip()) == 1 and _VARIABLE.search(match[1]):
        return text, ""  # the h of `\\pi r^2 h`
    unit = unformatted(match[2]).strip(" ./()").lower()
    return match[1].strip(), unit_of(unit)


def total(text: str) -> tuple[Fraction, str] | None:
    """What several quantities add up to, in the unit of the first: `2 hours 30 minutes`; None for anything else."""
    words = unformatted(text).lower()
    if not _QUANTITIES.fullmatch(words):
        return None
    sum_, unit = Fraction(0), ""
    for number, name in _QUANTITY.findall(words):
        symbol = unit_of(name.strip(" ."))
        unit = unit or symbol
        scale = ratio(symbol, unit)
        if scale is None:
            return None
        sum_ += Fraction(number) * scale
    return sum_, unit


def units_differ(one: str, other: str) -> bool:
    """Whether two units are known not to be the same; what is unknown, or left out, is not."""
    return one != other and _scale(one) is not None and _scale(other) is not None and {one, other} != _POUNDS


def ratio(one: str, other: str) -> Fraction | None:
    """How many of the second unit the first one is; None where they do not measure the same."""
    scale, expected = _scale(one), _scale(other)
    if scale is None or expected is None or scale[1] != expected[1]:
        return None
    return scale[0] / expected[0]


def unit_of(words: str) -> str:
    """The symbol of a unit: `miles per hour` as `mi/h`."""
    words = _INVERSE.sub(r"/\1^\2", words).replace("^1", "")
    return "/".join(map(_symbol, re.split(r"\s*(?:/|\bper\b)\s*", _QUOTIENTS.get(words, words))))


def _symbol(factor: str) -> str:
    """`square centimeters` as `cm^2`."""
    power = 1
    name = []
    for word in factor.replace("^", " ^").replace(".", " ").split():
        power = _POWERS.get(word, power)
        if word not in _POWERS:
            plural = word.endswith("s") and word not in _SYMBOLS and (len(word) > 3 or word[:-1] in _SYMBOLS)
            name.append(word[:-1] if plural else word)
    unit = " ".join(name)
    symbol = _SYMBOLS.get(unit) or _SYMBOLS.get(_BESIDE.sub("", unit), unit)
    return symbol + (f"^{power}" if power > 1 else "")


def _scale(unit: str) -> tuple[Fraction, Counter[str]] | None:
    """How much of what a unit such as `km/h` measures; None for an unknown one."""
    size = Fraction(1)
    measured: Counter[str] = Counter()
    for position, factor in enumerate(unit.split("/")):
        name, _, power = factor.partition("^")
        if name not in _UNITS:
            return None
        _, dimension, one = _UNITS[name]
        dimension, _, own = dimension.partition("^")
        exponent = int(power or 1) * (-1 if position else 1)
        size *= Fraction(one) ** exponent
        measured[dimension] += exponent * int(own or 1)
    return size, measured
