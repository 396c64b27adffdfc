"""Replace Unicode characters by their LaTeX or ASCII equivalents."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙ", "0123456789+-()n")
_RAISED_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ]+")
_LOWERED_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₙ]+")
_CIRCLED = re.compile("[①-⑨](?:[\\s、，,和与]+(?=[①-⑨]))?")
"""The number of a statement, with what joins it to the next one: `①和③`."""
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_SET_OF_EMPTY = re.compile(r"(?<![A-Za-z}])\{∅\}")
"""Braces around the sign of the empty set, unless they are the braces of a command's argument."""
_DIGIT = re.compile(r"(?![0-9])\d")
_INVISIBLE = dict.fromkeys(
    [
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2065),
        0xFEFF,
        0xAD,
        0x20E3,
        0xFE0F,
        0x2705,
        0x2713,
        0x2714,
    ]
)
"""Characters without meaning: joiners, direction marks, soft hyphens, variation selectors, check marks."""

MARKS_ON_LETTERS = "[\u0300-\u036f\u064b-\u0652\u0900-\u0903\u093a-\u094f\u0e31-\u0e4e]"
"""A pattern for accents and vowel signs that are separate characters."""

_COMMANDS = {
    "-": "−–—‐‑‒",
    "\\times ": "×✕",
    "\\cdot ": "·⋅∙•",
    "*": "∗",
    "\\div ": "÷",
    "/": "⁄∕",
    "\\sqrt ": "√",
    "\\sqrt[3] ": "∛",
    "\\infty ": "∞",
    "\\le ": "≤⩽≦",
    "\\ge ": "≥⩾≧",
    "\\ne ": "≠",
    "\\approx ": "≈≃≅",
    "\\equiv ": "≡",
    "\\pm ": "±",
    "\\mp ": "∓",
    "\\cup ": "∪⋃",
    "\\cap ": "∩",
    "\\setminus ": "∖",
    "\\in ": "∈",
    "\\notin ": "∉",
    "\\subset ": "⊂",
    "\\subseteq ": "⊆",
    "\\emptyset ": "∅⌀",
    "\\mathbb{R}": "ℝ",
    "\\mathbb{Z}": "ℤ",
    "\\mathbb{N}": "ℕ",
    "\\mathbb{Q}": "ℚ",
    "\\mathbb{C}": "ℂ",
    "\\degree ": "°º",
    "\\degree C": "℃",
    "\\degree F": "℉",
    "'": "′’‘",
    "''": "″",
    '"': "“”",
    "\\lfloor ": "⌊",
    "\\rfloor ": "⌋",
    "\\lceil ": "⌈",
    "\\rceil ": "⌉",
    "\\langle ": "⟨〈",
    "\\rangle ": "⟩〉",
    "\\land ": "∧",
    "\\lor ": "∨",
    "\\sum ": "∑",
    "\\prod ": "∏",
    "\\int ": "∫",
    "\\partial ": "∂",
    "\\ldots ": "…⋯",
    "\\to ": "→",
    "\\Rightarrow ": "⇒⟹⇔",
    "\\therefore ": "∴",
    "|": "‖",
    "\\angle ": "∠",
    "\\triangle ": "△",
    ".": "٫。",
    ",": "٬、，",
    "%": "٪％",
    ":": "：",
    ";": "；",
    "[": "【",
    "]": "】",
    "\\Omega ": "Ω",
    "\\mu ": "µ",
}
"""LaTeX or ASCII notations, and the characters that each replaces."""
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho . sigma tau upsilon phi"
    " chi psi omega"
)
"""Names of Greek letters in the order of Unicode; `.` is the place of the final sigma."""
_TABLE: dict[int, str | None] = {
    **{ord(character): command for command, characters in _COMMANDS.items() for character in characters},
    **{0x3B1 + at: f"\\{name} " for at, name in enumerate(_GREEK.split()) if name != "."},
    **{
        0x391 + at: f"\\{name.capitalize()} "
        for at, name in enumerate(_GREEK.split())
        if name in ("gamma", "delta", "theta", "lambda", "xi", "pi", "sigma", "phi", "psi", "omega")
    },
    0x3D5: "\\phi ",
    0x3F5: "\\epsilon ",
    0x3D1: "\\theta ",
    **_INVISIBLE,
}

MAX_CACHED = 1_000
"""Maximum characters of a text whose replacement is cached."""


def replace_characters(text: str) -> str:
    """Replace Unicode characters by LaTeX or ASCII notations; ASCII is unchanged."""
    if text.isascii():
        return text
    text = _SET_OF_EMPTY.sub(r"\\{\\emptyset\\}", text)
    return _replace(text) if len(text) <= MAX_CACHED else _replace.__wrapped__(text)


@lru_cache(maxsize=1024)
def _replace(text: str) -> str:
    text = _CIRCLED.sub(lambda one: f"\\circled_{{{unicodedata.digit(one[0][0])}}} ", text)
    text = _RAISED_RUN.sub(lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
    text = _LOWERED_RUN.sub(lambda run: f"_{{{run[0].translate(_LOWERED)}}}", text)
    text = _VULGAR.sub(lambda one: _fraction(one[0]), text)
    text = unicodedata.normalize("NFKC", text.translate(_TABLE)).translate(_TABLE)
    return _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _fraction(character: str) -> str:
    numerator, _, denominator = unicodedata.normalize("NFKC", character).partition("⁄")
    return f"\\frac{{{numerator}}}{{{denominator}}}"
