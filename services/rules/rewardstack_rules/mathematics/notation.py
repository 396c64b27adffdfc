"""One notation for what people and models write in many: `tidy`."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_VULGAR = {
    char: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", char).split("\u2044"))
    for char in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_SIGNS = {
    "\u2212": "-",  # minus sign
    "\u2013": "-",  # en dash
    "\u00d7": "\\times ",  # multiplication sign
    "·": "\\cdot ",
    "÷": "/",
    "π": "\\pi ",
    "∞": "\\infty ",
    "√": "\\sqrt ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "≠": "\\ne ",
    "±": "\\pm ",
    "\u222a": "\\cup ",  # union
    "∩": "\\cap ",
    "∈": "\\in ",
    "∅": "\\emptyset ",
    "²": "^2",
    "³": "^3",
    "°": "",
    "\u200b": "",
    "\ufeff": "",
}
_UNICODE = str.maketrans(_VULGAR | _SIGNS)

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\s+", " "),
        (r"\\?[$€£¥]|\\\(|\\\)", ""),
        (r"\\(?:left|right)\s*\.", ""),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![A-Za-z])", ""),
        (r"\\(?:text(?:bf|it|rm|normal|sf|tt)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*(?=\{)", r"\\text"),
        (r"\\text\{\s*(and|or)\s*\}", r" \1 "),
        (r"\s*(?:\\text\{\s*percent\s*\}|\bpercent\b|\\%)", "%"),
        (r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?(?![A-Za-z])", ""),
        (r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset "),
        (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (r"\\frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
        (r"(?<!\\)\\[,!;: ]|~|\\q?quad(?![A-Za-z])", " "),
        (r"(?<![\w.}])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d/])", r"\1\\frac{\2}{\3}"),
        (r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?!\w)", r"\1\\times 10^{\2}"),
        (r"(?<![A-Za-z\\])(pi|sin|cos|tan|cot|sec|csc|ln|log)(?![A-Za-z])", r"\\\1 "),
        (r"(?<![A-Za-z\\])infinity(?![A-Za-z])", r"\\infty "),
        (r"\+\s*\\infty", r"\\infty"),
        (r"^(?:=|\\approx(?![A-Za-z])|\\\[|[\s*`])+", ""),
        (r"(?:\\\]|[\s.,;:*`])+$", ""),
        (r"\s+", " "),
    )
)
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,\w])\d{1,3}(?:(?:,?\\!|(?<!\\)\\[,;: ]|\{,\}|[ ~])\d{3})+(?!\d)")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_THOUSANDS = re.compile(r"(?<![\d.,\w])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")


def tidy(text: str, thousands: bool = True) -> str:
    """The same mathematics in one notation, without what only sets it in type.

    Args:
        text: an answer, within the bounds.
        thousands: whether `1,234` outside of brackets is one number.
    """
    text = unicodedata.normalize("NFKC", text.translate(_UNICODE))
    text = _SPACED_THOUSANDS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    text = _REPEATING.sub(_as_fraction, text)
    return _join_thousands(text) if thousands else text


def squeeze(text: str) -> str:
    """What two tidied texts share if they differ in spaces and fonts only."""
    return _TEXT.sub(r"\1", text).replace(" ", "")


def plain(text: str) -> str:
    """A tidied text with words in the open: `\\text{cm}` becomes ` cm `."""
    return " ".join(_TEXT.sub(r" \1 ", text).split())


def _as_fraction(match: re.Match[str]) -> str:
    """A repeating decimal as the fraction it is."""
    whole, fixed, repeating = match.groups()
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
