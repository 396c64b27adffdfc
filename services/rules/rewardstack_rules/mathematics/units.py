"""Units behind, or before, a quantity: `measure`."""

from __future__ import annotations

import re

from rewardstack_rules.mathematics.notation import plain

_UNITS = {
    "mm": "mm millimeter millimetre",
    "cm": "cm centimeter centimetre",
    "m": "m meter metre",
    "km": "km kilometer kilometre",
    "in": "in inch inche",
    "ft": "ft foot feet",
    "yd": "yd yard",
    "mi": "mi mile",
    "g": "g gram",
    "kg": "kg kilogram",
    "mg": "mg milligram",
    "lb": "lb pound",
    "oz": "oz ounce",
    "ml": "ml milliliter millilitre",
    "l": "l liter litre",
    "s": "s sec second",
    "min": "min minute",
    "h": "h hr hour",
    "day": "day",
    "week": "week",
    "month": "month",
    "year": "year yr",
    "dollar": "dollar buck usd",
    "cent": "cent",
    "euro": "euro eur",
    "rupee": "rupee",
    "celsius": "celsius",
    "fahrenheit": "fahrenheit",
}
_SYMBOLS = {name: symbol for symbol, names in _UNITS.items() for name in names.split()}
_QUOTIENTS = {"mph": "mi/h", "kph": "km/h", "kmh": "km/h"}
_SHORT = "|".join(sorted((name for name in _SYMBOLS if len(name) == 2), key=len))
_POWERS = {"square": 2, "sq": 2, "squared": 2, "^2": 2, "^{2}": 2, "cubic": 3, "cu": 3, "cubed": 3, "^3": 3, "^{3}": 3}

_IN_TEXT = r"\s*/?\s*\\text\{[^{}]*[A-Za-z][^{}]*\}(?:\s*\^\s*\{?-?\d\}?)?"
_IN_WORDS = (
    rf"(?:\s+(?:[A-Za-z]{{3,}}|{_SHORT}|sq|cu|[mgshL])|(?<=\d)(?:{_SHORT}))\b\.?"
    r"(?:[ /-]+(?!(?:and|or)\b)[A-Za-z]+\.?)*(?:\s*\^\s*\{?\d\}?)?"
)
_MEASURE = re.compile(rf"(.*?(?:[\d}})]|\\pi))((?:{_IN_TEXT})+|{_IN_WORDS})")
_MONEY = re.compile(r"([+-]?\s*)\\text\{(dollar|euro|rupee)\}\s*(.+)")


def measure(text: str) -> tuple[str, str]:
    """A tidied text without its unit, and the unit's symbol or, where it has none, its words; empty without a unit."""
    money = _MONEY.fullmatch(text)
    if money is not None:
        return money[1] + money[3], money[2]
    match = _MEASURE.fullmatch(text)
    if match is None:
        return text, ""
    unit = plain(match[2]).strip(" ./()").lower()
    factors = re.split(r"\s*(?:/|\bper\b)\s*", _QUOTIENTS.get(unit, unit))
    return match[1].strip(), "/".join(map(_symbol, factors))


def units_differ(one: str, other: str) -> bool:
    """Whether two units are known not to be the same; what is unknown, or left out, is not."""
    return one != other and _known(one) and _known(other)


def _symbol(factor: str) -> str:
    """`square centimeters` as `cm^2`."""
    power = 1
    name = []
    for word in factor.replace("^", " ^").replace(".", " ").split():
        power = _POWERS.get(word, power)
        if word not in _POWERS:
            name.append(word[:-1] if len(word) > 3 and word.endswith("s") and word not in _SYMBOLS else word)
    unit = " ".join(name)
    return _SYMBOLS.get(unit, unit) + (f"^{power}" if power > 1 else "")


def _known(unit: str) -> bool:
    return all(factor.partition("^")[0] in _UNITS for factor in unit.split("/"))
