"""Detect texts that are only an answer, without a box, tag or announcement."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.expressions import FORMULA, last_aligned_line, read_formulas

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
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")
_SENTENCE = re.compile(
    r"(?<![\w.])(?:is|are|was|were|be|has|have|had|does|do|did|can(?:not|'t)?|will|would|should|could|might|may|must|"
    r"gives?|equals?|makes?|gets?|got|need|i|we|you|they|she|he|it|there|let|because|since|maybe|perhaps)(?![\w'])",
    re.IGNORECASE,
)
"""Words that occur in sentences but not in a bare answer."""
_TWO_SENTENCES = re.compile(r"(?:[A-Za-z]{2}|[\d)])[.!?] [A-Z](?![.)])")
"""The end of a sentence, and the beginning of another one."""
_BEFORE_NUMBER = re.compile(
    r"[^\d]*?(?<!\\)\b(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus|max|min|arc\w+|gcd|lcm|floor|ceil|Rs|USD|EUR|INR|GBP"
    r"|January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b)[^\W\d_]{2,}[^\d]*\d"
)
"""A word before a number, which shows that a text is prose. Functions, currencies, months and weekdays do not match."""
_PUNCTUATION = " \n.!\u3002"


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
    has_words = not line.startswith("\\text") and _WORD.search(line)
    return None if has_words or line.startswith(("\\]", "\\)", "$$", "```")) else bare_answer(line)


def _is_bare(text: str) -> bool:
    """Return whether a text is one line that contains no prose, no box and no formula in delimiters."""
    if (
        "\n" in text
        or "\\boxed" in text
        or text.endswith(("?", ":"))
        or FORMULA.search(text)
        or _TWO_SENTENCES.search(text)
    ):
        return False
    if _BEFORE_NUMBER.match(text):
        return False
    return len(_WORD.findall(text)) <= MAX_WORDS and not _SENTENCE.search(text)
