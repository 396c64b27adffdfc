"""Unicode's signs as LaTeX: `ascii_text`."""

from __future__ import annotations

import re
import unicodedata

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
    "\u2044": "/",  # fraction slash
    "π": "\\pi ",
    "∞": "\\infty ",
    "√": "\\sqrt ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "≠": "\\ne ",
    "≈": "\\approx ",
    "±": "\\pm ",
    "\u222a": "\\cup ",  # union
    "∩": "\\cap ",
    "∈": "\\in ",
    "∅": "\\emptyset ",
    "\u211d": "\\mathbb{R}",  # the real numbers
    "∠": "\\angle ",
    "°": "^\\circ ",
    "€": "\\text{euro}",
    "₹": "\\text{rupee}",
    "£": "\\text{gbp}",
    "¥": "\\text{yen}",
    "≡": "\\equiv ",
    "\u2032": "'",  # prime
    "\u2033": "''",  # double prime
    "\u2234": "\\therefore ",  # therefore
    "→": "\\to ",
    "\u27f9": "=>",  # long double arrow
    "\u21d2": "=>",  # double arrow
    "¢": "\\text{ cents}",
    "、": ", ",
    "\u200b": "",
    "\ufeff": "",
}
_GREEK = {
    char: "\\" + unicodedata.name(char).rpartition(" ")[2].lower().replace("lamda", "lambda") + " "
    for char in "αβγδεθλμφψωρσ"
}
_TABLE = str.maketrans(_VULGAR | _SIGNS | _GREEK)
_ROOT = re.compile(r"√ ?(\d{1,40}|\([^()√]{1,60}\))")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")


def ascii_text(text: str) -> str:
    """A text with LaTeX for Unicode's mathematical signs, and full-width characters at their usual width."""
    if text.isascii():
        return text
    # Before the normal form, which makes digits of raised and lowered ones.
    text = _RAISED.sub(lambda match: f"^{{{_flat(match[0])}}}", text)
    text = _LOWERED.sub(lambda match: f"_{{{_flat(match[0])}}}", text)
    text = _ROOT.sub(lambda match: f"\\sqrt{{{match[1].strip('()')}}}", text)
    return unicodedata.normalize("NFKC", text.translate(_TABLE))


def _flat(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2212", "-")
