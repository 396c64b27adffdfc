"""Whether a text is an answer and nothing else: `is_bare`."""

from __future__ import annotations

import re

from rewardstack_verifier.extraction.boxes import LONGEST
from rewardstack_verifier.extraction.formulas import FORMULA
from rewardstack_verifier.extraction.languages import IS_SAID

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MAX_WORDS = 6
"""Words of an answer in words."""
SUBJECT = re.compile(r"[Tt]he\b[^,\n]*\b(?:is|are|equals?)\b[\s*_]*")
LEAD_IN = re.compile(
    r"(?:(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus)\b)(?:[^\W\d_]|')+[,:]?\s+)*"
    r"(?:(?!(?:sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus)\b)(?:[^\W\d_]|'){2,}[,:]?|[^\W\d_]:|[éèàу])\s+"
    r"(?=[-+\u2212]?[$€£¥\d.]|\\\$)"
)
BOLD = re.compile(r"(?<![\w*)])\*\*(?!\s)([^*\n]{1,200})(?<!\s)\*\*(?![\w*(])")
IS_IT = re.compile(
    r"(.{1,200}?)\s+(?:is|are)\s+(?:(?:the|our|my)\s+)?(?:(?:final|correct|right|only|unique)\s+){0,2}(?:answer|solution)s?\W*"
)
CHOSEN = re.compile(
    r".{0,200}\b(?:[Oo]ption|[Cc]hoice|choose|select|pick)\s+\(?([A-J])\)?(?=[\s.,*]|$)"
    r"(?! or )(?!.{0,200}\b(?:not|incorrect|wrong)\b)"
)
DIGIT = re.compile(r"\d")
WORD = re.compile(r"[A-Za-z]{2,}")
_TWO_SENTENCES = re.compile(r"(?:[A-Za-z]{2}|[\d)])[.!?] [A-Z](?![.)])")
_NO_WORD = (
    r"sqrt|sin|cos|tan|log|ln|exp|pi|negative|minus|max|min|arc\w+|gcd|lcm|floor|ceil|no|all|Rs|USD|EUR|INR|GBP"
    rf"|{MONTHS}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
)
_SENTENCE = re.compile(
    rf"(?:[-*•] |#{{1,6}} )|(?!(?:{_NO_WORD})\b)[A-Za-z]{{2,}}(?![A-Za-z(^_])(?!\s?=)"
    r"|\d+%? (?:percent )?(?:out )?of (?:the|his|her|their|these|those|all|\d)|\d[^=]*[A-Za-z]{2}[^=]*="
    r"|\d+ [a-z]+ \(\d"
    r"|.{1,200}?\b(?:equals?|gives?|makes?|gets?|adds?|sums?|costs?|will|can|must|works?)\b"
)
"""How a sentence begins, or what it does, in which numbers are no answer by themselves."""
_UNSPACED_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}[\s:]*[-\u2212A-Za-z$\\\d({\[√π]")
_FOREIGN = re.compile(r"(?=\w*[^\x00-\x7f])[^\W\d_]{4,}(?:\s[^\W\d_]+){0,4}(?:,|\s[\u2013\u2014])\s")
"""How a sentence begins whose words are not English: "Следовательно, x = 2", "Искомое число — 17"."""
_HAS_VERB = re.compile(
    r".{1,200}?\b(?:is|are|was|were|be|has|have|does|cannot|so|hence|thus|therefore|are)\s|(?:it|that)'s\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? )?(?:{MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\W*"
)


def is_bare(text: str) -> bool:
    """Whether this is an answer and nothing else: one line, not prose around a formula or a number."""
    if not text or "\n" in text or len(text) > LONGEST or "\\boxed" in text or FORMULA.search(text):
        return False
    if _DATE.fullmatch(text):
        return True
    if any(start.match(text) for start in (LEAD_IN, SUBJECT, CHOSEN)) or IS_IT.fullmatch(text):
        return False
    if (
        _TWO_SENTENCES.search(text)
        or _HAS_VERB.match(text)
        or text.endswith("?")
        or IS_SAID.search(text)
        or (DIGIT.search(text) and _FOREIGN.match(text))
        or (DIGIT.search(text) and (_SENTENCE.match(text) or _UNSPACED_WORDS.match(text)))
    ):
        return False
    bold = BOLD.search(text)
    if bold is not None and bold.group() != text.rstrip(".!"):
        return False
    return "\\" in text or len(WORD.findall(text)) <= MAX_WORDS
