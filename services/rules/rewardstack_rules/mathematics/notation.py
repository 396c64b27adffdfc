"""One notation for what people and models write in many: `tidy`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from rewardstack_rules.mathematics.symbols import ascii_text

_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\s+", " "),
        # what sets in type only
        (r"\\\$", r"\\text{dollar}"),
        (r"[$£¥]|\\\(|\\\)", ""),
        (r"\\(?:left|right)\s*\.", ""),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits)(?![A-Za-z])", ""),
        (r"\\(?:text(?:bf|it|rm|normal|sf|tt|up)?|math(?:rm|bf|it|sf)|mbox|operatorname)\s*(?=\{)", r"\\text"),
        (r"\\lbrace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\langle(?![A-Za-z])", "("),
        (r"\\rangle(?![A-Za-z])", ")"),
        # words
        (r"^\s*\\text\{([^{}]* (?:and|or) [^{}]*)\}\s*$", r"\1"),
        (r"^\s*(?:\\text\{)?\s*[Aa]ll real(?:s| numbers)\s*\}?\s*$", r"\\mathbb{R}"),
        (r"\{:\}", ":"),
        (r"\\text\{\s*(and|or)\s*\}", r" \1 "),
        (r"\s*(?:\\text\{\s*percent\s*\}|\bpercent\b|\\%)", "%"),
        (r"(?<=\d)\s*(?:\\text\{\s*to\s*\}|\bto\b)\s*(?=\d)", ":"),
        (r"(?<=\d)\s*\\text\{\s*(thousand|million|billion|trillion)\b", r" \1 \\text{"),
        (r"(?<=\d) ?\bthousand\b", r"\\times 10^{3}"),
        (r"(?<=\d) ?\bmillion\b", r"\\times 10^{6}"),
        (r"(?<=\d) ?\bbillion\b", r"\\times 10^{9}"),
        (r"(?<=\d) ?\btrillion\b", r"\\times 10^{12}"),
        (r"\\text\{\s*\}", ""),
        (r"\b(?:negative|minus) (?=\d)", "-"),
        (r"(?<=[\d}]) ?(?:\\text\{ ?)?\([A-Za-z][A-Za-z ,'-]{2,}\)(?: ?\})?$", ""),
        # degrees
        (
            r"(\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])\s*[({]?\s*)(\d+)\s*\^\s*\{?\s*\\circ(?![A-Za-z])\s*\}?",
            r"\1\\frac{\2\\pi}{180}",
        ),
        (r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\{\s*)?C\b\}?", r"\\text{celsius}"),
        (r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\text\{\s*)?F\b\}?", r"\\text{fahrenheit}"),
        (r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?(?![A-Za-z])", ""),
        # fractions and powers
        (r"\\(?:[dtc]|nice|s)frac(?![A-Za-z])", r"\\frac"),
        (r"\\frac\s*(\d)\s*(?=[\d{])", r"\\frac{\1}"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\d)", r"\1{\2}"),
        (r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}\s*\}", r"\\text{\1/\2}"),
        (r"(?<=[\w)\]}]) ?\*\* ?(?=[\w({+-])", "^"),
        (r"\^ ?\(([^()]*)\)", r"^{\1}"),
        (r"\^ ?(-\d+|\d{2,})", r"^{\1}"),
        (r"(?<![A-Za-z\\])sqrt ?\(([^()]*)\)", r"\\sqrt{\1}"),
        (r"(?<=\d) ?[xX] ?(?=10 ?\^)", r"\\times "),
        # sets, dots, spaces
        (r"\\varnothing(?![A-Za-z])|\\\{\s*\\\}", r"\\emptyset "),
        (r"(?<=[)\]}]) ?U ?(?=[(\[\\])", r"\\cup "),
        (r"\\[lc]?dots[cbo]?(?![A-Za-z])|\.\.\.", r"\\ldots "),
        (r"(?<!\\)\\[,!;: ]|~|\\q?quad", " "),
        # numbers
        (r"(?<![\w.}])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d/])", r"\1\\frac{\2}{\3}"),
        (r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[eE]([+-]?\d{1,4})(?!\w)", r"\1\\times 10^{\2}"),
        # functions
        (r"(?<![A-Za-z\\])(pi|sin|cos|tan|cot|sec|csc|ln|log)(?![A-Za-z])", r"\\\1 "),
        (r"(?<![A-Za-z\\])infinity(?![A-Za-z])", r"\\infty "),
        (r"\+\s*\\infty", r"\\infty"),
        # the rim
        (r"^(?:=|\\approx(?![A-Za-z])|\\\[|[\s*`])+", ""),
        (r"(?:\\\]|[\s.,;:*`。])+$", ""),
        (r"\s+", " "),
    )
)
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_COMMAND = re.compile(r"(?<!\\)\\[A-Za-z]")
_GROUPED = re.compile(r"(?<![\d.,\w])\d{1,3}(?:(?:,?\\! ?|(?<!\\)\\[,;: ]|\s*\{\s*,\s*\}\s*|[ ~])\d{3})+(?!\d)")
_EUROPEAN = re.compile(r"(?<![\d.,\w])([1-9]\d{0,2}(?:\.\d{3})+),(\d+)(?![\d.,])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_AND_SO_ON = re.compile(r"(\d*)\.(\d*?)(?:(\d{1,2}?)\3{2,}|(\d{3,9}?)\4+)\s*(?:\.\.\.|…|\\[lc]?dots(?![A-Za-z]))")
_THOUSANDS = re.compile(r"(?<![\d.,\w])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
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
    text = _AND_SO_ON.sub(_as_fraction, text)
    text = _GROUPED.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _EUROPEAN.sub(lambda match: f"{match[1].replace('.', '')}.{match[2]}", text)
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    text = _REPEATING.sub(_as_fraction, text)
    return _join_thousands(text) if thousands else text


def squeeze(text: str) -> str:
    """What two tidied texts share if they differ in spaces and fonts only."""
    return re.sub(r"(?<!\d) | (?!\d)", "", _TEXT.sub(r"\1", text))


def plain(text: str) -> str:
    """A tidied text with words in the open: `\\text{cm}` becomes ` cm `."""
    return " ".join(_TEXT.sub(r" \1 ", text).split())


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
