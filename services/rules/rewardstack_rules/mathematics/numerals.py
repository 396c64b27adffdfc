"""Numbers in words: `twenty-four`, `one hundred and five`, `two thirds`, `negative seven`."""

from __future__ import annotations

from fractions import Fraction

_ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL = {name: value for value, name in enumerate(_ONES)} | {ten: 20 + 10 * at for at, ten in enumerate(_TENS)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {"half": 2, "halve": 2, "third": 3, "fourth": 4, "quarter": 4} | {
    f"{name}th": value
    for name, value in (("fif", 5), ("six", 6), ("seven", 7), ("eigh", 8), ("nin", 9), ("ten", 10), ("twelf", 12))
}
_ORDINALS = {"first": "one", "second": "two", "third": "three", "fifth": "five", "eighth": "eight", "ninth": "nine"} | {
    "twelfth": "twelve"
}
MAX_WORDS = 20


def number(words: str) -> str | None:
    """The number that words say, in digits or as `\\frac{1}{2}`; None where they say anything else.

    Args:
        words: in lower case and the singular, with a space for each hyphen.
    """
    names = words.split()
    sign = "-" if names[:1] in (["negative"], ["minus"]) else ""
    names = names[1:] if sign else names
    if not 0 < len(names) <= MAX_WORDS:
        return None
    if names == ["half"]:
        return f"{sign}\\frac{{1}}{{2}}"
    value = _whole(names)
    if value is not None:
        return f"{sign}{value}"
    part, above = _PARTS.get(names[-1]), _whole(names[:-1])
    if part is None or above is None or not 0 < above < part:
        return None if sign else _ordinal(names)
    fraction = Fraction(above, part)
    return f"{sign}\\frac{{{fraction.numerator}}}{{{fraction.denominator}}}"


def _ordinal(names: list[str]) -> str | None:
    """The place that words give: 23 for the twenty-third."""
    last = names[-1]
    cardinal = _ORDINALS.get(last) or (f"{last[:-4]}y" if last.endswith("ieth") else last.removesuffix("th"))
    value = _whole([*names[:-1], cardinal]) if cardinal != last else None
    return str(value) if value else None


def _whole(names: list[str]) -> int | None:
    """Hundreds, tens and ones, in groups of thousands."""
    total = group = 0
    last, limit = "", 10**12
    for name in names:
        if name in _LARGE and 0 < group and _LARGE[name] < limit:
            limit = _LARGE[name]
            total, group = total + group * limit, 0
        elif name == "hundred" and 0 < group < 20:
            group *= 100
        elif name in _SMALL and _follows(_SMALL[name], last, group):
            group += _SMALL[name]
        elif name != "and" or last not in ("hundred", *_LARGE):
            return None
        last = name
    return total + group if last not in ("", "and") else None


def _follows(value: int, last: str, group: int) -> bool:
    """Whether a number below a hundred may stand behind the last word: alone, behind hundreds, or ones behind tens."""
    if last in _TENS:
        return 0 < value < 10
    return last not in _SMALL and value > 0 if group or last else True
