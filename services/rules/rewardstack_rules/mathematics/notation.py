"""One notation for what people and models write in many: `tidy`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rewardstack_rules.mathematics.rewrites import REWRITES
from rewardstack_rules.mathematics.symbols import ascii_text

_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_COMMAND = re.compile(r"(?<!\\)\\[A-Za-z]")
_PRIME = r"(?:'|\^\s*\{?\s*\\prime\s*\}?)"
_SEXAGESIMAL = re.compile(
    rf"(\d+)\s*\^\s*\{{?\s*\\circ\s*\}}?\s*(\d{{1,2}})\s*{_PRIME}(?:\s*(\d{{1,2}})\s*(?:{_PRIME}{{2}}|\"|\^\{{\\prime\\prime\}}))?"
)
_COMMA = re.compile(r"\\(?:text|mathord|mathrm)\{,\}")
_GROUPED = re.compile(r"(?<![\d.,\w])\d{1,3}(?:(?:,?\\! ?|(?<!\\)\\[,;: ]|\s*\{\s*,\s*\}\s*|[ ~])\d{3})+(?!\d)")
_EUROPEAN = re.compile(r"(?<![\d.,\w])([1-9]\d{0,2}(?:\.\d{3})+),(\d+)(?![\d.,])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_AND_SO_ON = re.compile(r"(\d*)\.(\d*?)(?:(\d)\3{2,}|(\d{2,9}?)\4+)\s*(?:\.\.\.|…|\\[lc]?dots(?![A-Za-z]))")
_THOUSANDS = re.compile(r"(?<![\d.,\w])[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


@lru_cache(maxsize=1024)
def tidy(text: str, thousands: bool = True) -> str:
    """The same mathematics in one notation, without what only sets it in type.

    Args:
        text: an answer, within the bounds.
        thousands: whether `1,234` outside of brackets is one number.
    """
    if _PLAIN.fullmatch(text) and text.isascii():
        return text
    text = ascii_text(text)
    if "\\\\" in text and not _COMMAND.search(text):
        text = text.replace("\\\\", "\\")
    text = _COMMA.sub("{,}", text)
    text = _AND_SO_ON.sub(_as_fraction, text)
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _EUROPEAN.sub(lambda match: f"{match[1].replace('.', '')}.{match[2]}", text)
    if "\\circ" in text:
        text = _SEXAGESIMAL.sub(_as_degrees, text)
    for sign, pattern, replacement in REWRITES:
        if sign in text:
            text = pattern.sub(replacement, text)
    text = _REPEATING.sub(_as_fraction, text)
    return _join_thousands(text) if thousands else text


def squeeze(text: str) -> str:
    """What two tidied texts share if they differ in spaces and fonts only."""
    return re.sub(r"(?<!\d) | (?!\d)", "", _TEXT.sub(r"\1", text))


def unformatted(text: str) -> str:
    """A tidied text with words in the open: `\\text{cm}` becomes ` cm `."""
    return " ".join(_TEXT.sub(r" \1 ", text).split())


def _as_degrees(match: re.Match[str]) -> str:
    """`22^\\circ 30'` as `\\frac{45}{2}^\\circ`."""
    degrees, minutes, seconds = (Fraction(part or 0) for part in match.groups())
    value = degrees + minutes / 60 + seconds / 3600
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}^\\circ"


def _as_fraction(match: re.Match[str]) -> str:
    """A repeating decimal as the fraction it is."""
    whole, fixed, *blocks = match.groups()
    repeating = next(block for block in blocks if block)
    shift = 10 ** len(fixed)
    value = Fraction(int(whole + fixed or "0"), shift) + Fraction(int(repeating), shift * (10 ** len(repeating) - 1))
    return f"\\frac{{{value.numerator}}}{{{value.denominator}}}"


def _join_thousands(text: str) -> str:
    """Inside brackets a comma separates; outside, three digits behind it make one number."""
    parts = []
    depth = end = 0
    for match in _THOUSANDS.finditer(text):
        between = text[end : match.start()]
        depth += sum(between.count(char) for char in "([{") - sum(between.count(char) for char in ")]}")
        number = match.group()
        parts += [between, number if depth else number.replace(",", "")]
        end = match.end()
    return "".join(parts) + text[end:]
