"""Find formulas, numbers and their units in text, and texts that are only an answer."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from itertools import pairwise

from rewardstack_verifier.lexicon.phrases import PROSE
from rewardstack_verifier.lexicon.units import IN_PROSE

_UNITS = "|".join(sorted(IN_PROSE.split(), key=len, reverse=True))
_POWER = r"\}?\$?\s?(?:\^?\{?[23]\}?(?!\d)|[²³])\$?"
UNIT_AFTER = (
    rf"[*$]{{0,2}}[ -]?(?:\\text\{{ ?)?(?P<unit>(?:(?:square|cubic|sq\.?|cu\.?) )?(?:{_UNITS}|[mgL])(?![A-Za-z'])"
    rf"(?:{_POWER})?(?:\s?(?:/|per)\s?(?:{_UNITS}|[sh])(?![A-Za-z'])(?:{_POWER})?)?|¢)"
)
"""A pattern for the unit right after a number or formula."""
MAX_JOINED = 12
"""Maximum number of joined formulas to read."""

_IN_WORD = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""A word character. Chinese, Japanese and Korean characters are excluded: a number may be right next to them."""
NUMBER = re.compile(
    r"(?:(?<![\w)\]}])[-+\u2212]\s?)?(?:(?:\b(?:US|R|C|A|HK|NZ)(?=\\?\$))?\\?[$€£¥₹₩₽]\s?)?"
    rf"(?<!{_IN_WORD})(?<!\.)[-+\u2212]?"
    r"(?:\d{1,2}:[0-5]\d(?:\s?[aApP]\.?[mM]\b\.?)|\d+(?::\d+)+|[1-9]\d{0,2}(?:\.\d{3})+,\d+"
    r"|\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?=\s?[€₽])"
    r"|\d+(?:,\d+)*(?:\.\d+)?|\.\d+|[¼-¾⅐-⅞])"
    rf"(?:\s?/\s?\d+(?!{_IN_WORD})|\s\d+/\d+(?!{_IN_WORD}|/)|\s?[¼-¾⅐-⅞]|\sand\sa\s(?:half|quarter|third)\b)?(?:\s?\\?%)?"
)
FORMULA = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$"
    r"|(?<!\\)\$(?P<inline>(?![\s$])(?:[^$\n\\]|\\.)*?(?<!\s))\$(?!\d)"
    r"|(?<!\\)\$(?=[ \t]|[^$\n]*[ \t]\$)"
    r"(?P<spaced>(?:\{[A-Za-z]{2,}\}|\\[A-Za-z]+|\\[^A-Za-z\n]|[^$\n\\A-Za-z]|(?<![A-Za-z])[A-Za-z](?![A-Za-z]))+)\$(?!\d)"
    r"|\\\((?P<round>(?:[^\\]|\\[^()])*)\\\)"
    r"|\\\[(?P<square>(?:[^\\]|\\[^\[\]])*)\\\]"
)
JOINT = re.compile(r"\s*(?:,\s*)?(?:\band\b|\bor\b|,)\s*")
"""Text that joins two formulas of an answer."""
_UNIT = re.compile(UNIT_AFTER)
_LINES = re.compile(
    r"\\begin\{(?:(?:align|gather)(?:ed)?|split|eqnarray)\*?\}(.*)\\end\{(?:(?:align|gather)(?:ed)?|split|eqnarray)\*?\}",
    re.DOTALL,
)
_CURRENCIES = frozenset("$€£¥₹₩₽")
MAX_LENGTH = 1_000
"""Maximum characters of a response that is only an answer."""
MAX_WORDS = 6
"""Maximum words of a response that is only an answer."""

_CONNECTIVE = re.compile(
    r"(?:(?:so|thus|hence|therefore|then|finally|(?:it|this|that)(?:'s| is)|[-=]>|\u2234|\u21d2|[-*\u2022])[,:]?\s+)+",
    re.IGNORECASE,
)
"""Words and signs before a bare answer that do not belong to it: "So", "it is"."""
_FENCE = re.compile(r"```\w{0,20}\n([^`\n]*)\n```")
_BOLD = re.compile(r"\*\*([^*]{1,200})\*\*|__([^_]{1,200})__|`([^`]{1,200})`")
_WORDS = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")
_SENTENCE = re.compile(rf"(?<![\w.])(?:{PROSE})(?![\w'])", re.IGNORECASE)
_TWO_SENTENCES = re.compile(r"(?:[A-Za-z]{2}|[\d)])[.!?] [A-Z](?![.)])")
"""The end of a sentence, and the beginning of another one."""
_BEFORE_NUMBER = re.compile(
    r"[^\d]*?(?<!\\)\b(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus|max|min|arc\w+|gcd|lcm|floor|ceil|Rs|USD|EUR|INR|GBP"
    r"|January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b)[^\W\d_]{2,}[^\d]*\d"
)
"""A word before a number, which shows that a text is prose. Functions, currencies, months and weekdays do not match."""
_PUNCTUATION = " \n.!\u3002"


def read_formulas(text: str) -> tuple[str, int] | None:
    """Return the formulas at the start of a text as one answer, and their end; None if there is no formula.

    Formulas are joined by commas, "and" or "or". A single formula includes its unit.
    """
    formulas: list[re.Match[str]] = []
    match = FORMULA.match(text)
    while match is not None and len(formulas) < MAX_JOINED:
        formulas.append(match)
        joint = JOINT.match(text, match.end())
        match = _next_formula(text, joint) if joint else None
    if not formulas:
        return None
    between = [text[one.end() : other.start()] for one, other in pairwise(formulas)]
    word = next((word for word in ("or", "and") if any(word in joint for joint in between)), "")
    joined = (f" {word} " if word else ", ").join(map(strip_delimiters, formulas))
    unit_match = _match_unit(text, formulas[-1]) if len(formulas) == 1 else None
    return (f"{joined} {clean_unit(unit_match)}", unit_match.end()) if unit_match else (joined, formulas[-1].end())


def _next_formula(text: str, joint: re.Match[str]) -> re.Match[str] | None:
    """Return the formula after a joint, or a number if the joint is an "or": "$\\frac{7}{2}$, or 3.5"; else None."""
    formula = FORMULA.match(text, joint.end())
    return NUMBER.match(text, joint.end()) if formula is None and "or" in joint.group() else formula


def find_last_expression(text: str) -> str | None:
    """Return the last formula or number of a text with its unit; None if there is neither."""
    formula = last_match(FORMULA.finditer(text))
    last = last_match(NUMBER.finditer(text, formula.end() if formula else 0)) or formula
    return None if last is None else strip_delimiters(last) + read_unit(text, last)


def last_match(matches: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """Return the last match; None if there is none."""
    return next(iter(deque(matches, maxlen=1)), None)


def read_unit(text: str, match: re.Match[str]) -> str:
    """Return a space and the unit after a number or formula; empty if there is no unit, or for an amount of money."""
    unit_match = _match_unit(text, match)
    return f" {clean_unit(unit_match)}" if unit_match else ""


def _match_unit(text: str, match: re.Match[str]) -> re.Match[str] | None:
    return None if set(strip_delimiters(match)) & _CURRENCIES else _UNIT.match(text, match.end())


def clean_unit(unit_match: re.Match[str]) -> str:
    """Return the matched unit without `$` and braces."""
    return unit_match["unit"].replace("$", "").replace("}", "").replace("{", "")


def strip_delimiters(match: re.Match[str]) -> str:
    """Return a formula without its delimiters (only the last of aligned lines), or a number unchanged."""
    inside = next((group for group in match.groups() if group is not None), match.group()).strip()
    return last_aligned_line(inside) or inside


def last_aligned_line(text: str) -> str | None:
    """Return the last row of an environment such as `align` that ends a text; None if no such environment ends it."""
    start = text.rfind("\\begin{") if text.endswith("}") else -1
    lines = _LINES.fullmatch(text, start) if start >= 0 else None
    return lines[1].rstrip("\\ \n").rpartition("\\\\")[2].replace("&", "").strip(" =\n") if lines else None


def bare_answer(text: str) -> str | None:
    """Return a text that is only an answer, without its emphasis and delimiters; None for other texts.

    Args:
        text: a response without reasoning.
    """
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    fence = _FENCE.fullmatch(text)
    text = fence[1] if fence else text
    start = _CONNECTIVE.match(text)
    text = text[start.end() :] if start else text
    bold = _BOLD.fullmatch(text.rstrip(_PUNCTUATION))
    text = next(filter(None, bold.groups())) if bold else text
    formulas = read_formulas(text)
    if formulas is not None:
        return formulas[0] if not text[formulas[1] :].strip(_PUNCTUATION) else None
    if text.startswith("\\begin{"):
        return last_aligned_line(text.rstrip(_PUNCTUATION)) or (text if text.endswith("}") else None)
    text = text.rstrip(". \u3002")
    return text if text and _is_bare(text) else None


def last_formula(text: str) -> str | None:
    """Return the last line if it is a formula without delimiters and without words around it; else None."""
    line = text.rpartition("\n")[2].strip(". ")
    has_words = not line.startswith("\\text") and _WORDS.search(line)
    return None if has_words or line.startswith(("\\]", "\\)", "$$", "```")) else bare_answer(line)


def _is_bare(text: str) -> bool:
    """Return whether a text is one line that contains no prose, no box and no formula in delimiters."""
    if "\n" in text or "\\boxed" in text or text.endswith(("?", ":")) or _BEFORE_NUMBER.match(text):
        return False
    is_prose = any(pattern.search(text) for pattern in (FORMULA, _TWO_SENTENCES, _SENTENCE))
    return not is_prose and len(_WORDS.findall(text)) <= MAX_WORDS
