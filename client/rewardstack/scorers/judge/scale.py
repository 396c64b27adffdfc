"""Find the scale of a judge's verdicts: the declared `score_range`, or the range in the text of the prompt template.

Sentences with the word REWARD are searched first, then other sentences. A template whose text contradicts the scale is
rejected. Otherwise, with "1 to 10" in the text and a scale from 0 to 1, the worst verdict, 1, would be the best reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple
from unicodedata import normalize

from rewardstack.core.fields import field_error
from rewardstack.core.json_types import is_finite, is_list, plain

FIELD = "score_range"
MAX_END = 1e6
"""Maximum absolute value of a scale's ends."""


class Scale(NamedTuple):
    """The range of a verdict, from worst to best."""

    low: float = 0.0
    high: float = 1.0

    @property
    def text(self) -> str:
        """The range as text, such as "0 to 1"."""
        return f"{self.low:g} to {self.high:g}"

    @property
    def declaration(self) -> str:
        """The declaration of the range in a template."""
        return f"{FIELD} = [{self.low:g}, {self.high:g}]"

    def fraction(self, value: float) -> float:
        """Return the position of a number on the scale, from 0 (worst) to 1 (best)."""
        return (value - self.low) / (self.high - self.low) + 0.0


UNIT = Scale()
HUNDRED = Scale(0.0, 100.0)

_NUMBER = r"(-?\d{1,4}(?:\.\d{1,3})?)"
_NOTE = r"\s{0,3}(?:\([^()\n]{0,80}\)\s{0,3})?"
"""A note in parentheses after an end of the scale, as in "from 1 (useless) to 10 (perfect)"."""
_TO = rf"{_NOTE}(?:-to-|-|\u2013|\u2014|~|\.{{2,3}}|to|through|up to|bis|\u00e0|\u5230|\u81f3|\u304b\u3089)\s{{0,3}}"
_IS = r"\s{0,3}(?:is|means|being|stands for|=)\s"
_RANGE_TEXT = re.compile(
    rf"(?<![A-Za-z0-9.\-])(?:{_NUMBER}{_TO}{_NUMBER}"
    rf"|(?:between|scale\s{{1,3}}of)\s{{1,3}}{_NUMBER}{_NOTE}and\s{{1,3}}{_NUMBER}"
    rf"|\[\s{{0,3}}{_NUMBER}\s{{0,3}},\s{{0,3}}{_NUMBER}\s{{0,3}}\]"
    rf"|{_NUMBER}{_IS}[^.\n]{{1,160}}\s{_NUMBER}(?={_IS}))"
    r"(?![A-Za-z0-9]|\.\d)(?!\s{0,3}(?:sentence|word|line|paragraph|step|token|character)s?\b)"
    rf"|\b(?:out|scale)\s{{1,3}}of\s{{1,3}}(?P<of>\d{{1,4}})(?![A-Za-z0-9]|\.\d|{_TO}|{_NOTE}and\b)"
    r"|\b(?P<points>\d{1,3})[- ](?:point|star)\s",
    re.IGNORECASE,
)
_LIKERT = re.compile(r"^\W{0,4}(?:score|rating|grade|level)?\s{0,3}(\d{1,3})\s{0,3}[:=]", re.IGNORECASE | re.MULTILINE)
"""The start of a line in a list of grades, such as `Score 5: perfect`."""
_NUMBER_WORDS = (*("zero", "one", "two", "three", "four", "five"), *("six", "seven", "eight", "nine", "ten"))
_WORD_VALUES = {word: str(at) for at, word in enumerate(_NUMBER_WORDS)}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORD_VALUES)})\b", re.IGNORECASE)
_DENOMINATOR = re.compile(r"[>\])}_]\s?/\s?(\d{1,4})(?!\d)")
"""The denominator after a placeholder, as in `REWARD: <number>/10`."""
_SENTENCE = re.compile(r"\n|(?<=[.!?;\u3002\uff01\uff1f])\s")
_REWARD = re.compile(r"\breward\b", re.IGNORECASE)
_LABEL = re.compile(r"[\W\d]{0,8}[A-Za-z][\w ]{0,40}:\s{0,3}[<\[({]")
"""The start of a reply line that is not the verdict line, such as `CORRECTNESS: <0 to 10>`."""
_CRITERION = re.compile(r"\b(?:each|every|criteri(?:on|a)|aspects?|dimensions?)\b", re.IGNORECASE)
_RATING = re.compile(r"\b(?:rate|rating|grade|score|scale|verdict|points?|mark)\b", re.IGNORECASE)


def read_range(value: Any) -> Scale | None:
    """Parse a `score_range`; return None if there is none.

    Raises:
        RequestError: `value` is not a list of two numbers from `-MAX_END` to `MAX_END`, with the lower number first.
    """
    value = plain(value)
    if value is None:
        return None
    if not is_list(value) or len(value) != 2 or not all(is_finite(one) and abs(one) <= MAX_END for one in value):
        raise field_error(FIELD, f"expected two numbers up to {MAX_END:,.0f}, such as [1, 10], got {str(value)[:50]!r}")
    scale = Scale(*map(float, value))
    if not scale.low < scale.high:
        raise field_error(FIELD, f"expected the lower end first, got [{value[0]:g}, {value[1]:g}]")
    return scale


def find_scale(text: str, declared: Scale | None) -> Scale:
    """Return the scale of a template's verdicts: the declared range, else the range in the text, else 0 to 1.

    Args:
        text: the text of the template.
        declared: the declared `score_range`; None if no range is declared.

    Raises:
        RequestError: a range is declared, and the text has only other ranges. Or no range is declared, and the text
            has several ranges, or a range that is neither 0 to 1 nor 0 to 100.
    """
    scales = _mentioned_scales(text, with_criteria=declared is None)
    if declared is not None:
        if scales and declared not in scales:
            raise _contradiction_error(declared, scales)
        return declared
    if len(scales) > 1 or not scales <= {UNIT, HUNDRED}:
        raise _undeclared_error(_join_bands(scales))
    return next(iter(scales), UNIT)


def _mentioned_scales(text: str, *, with_criteria: bool) -> set[Scale]:
    """Return the ranges in a template that may be the range of the verdict; empty if there are none.

    They are from the first of these sources that has any: sentences with the word REWARD, other sentences that may
    describe the verdict, the template's list of grades.

    Args:
        text: the text of the template.
        with_criteria: whether the other sentences may be about criteria. If False, a sentence without the word REWARD
            is searched only if it mentions a rating but no criterion.
    """
    text = _WORD.sub(lambda word: _WORD_VALUES[word[0].lower()], normalize("NFKC", text))
    sentences = [one for one in _SENTENCE.split(text) if one.strip()]
    verdict = [(one, _REWARD.search(one)) for one in sentences]
    ranges = set(_find_ranges(one[match.start() :] for one, match in verdict if match))
    if not ranges:
        ranges = set(_find_ranges(one[: match.start()] for one, match in verdict if match))
    if ranges:
        return ranges
    others = [one for one, match in verdict if not match and not _LABEL.match(one)]
    if not with_criteria:
        others = [one for one in others if _RATING.search(one) and not _CRITERION.search(one)]
    return set(_find_ranges(others)) or _grade_list_scale(text)


def _find_ranges(texts: Iterable[str]) -> Iterable[Scale]:
    """Yield the ranges in texts: `1 to 9`, `out of 5` (0 to 5), `7-point` (1 to 7), `REWARD: <number>/10` (0 to 10)."""
    for text in texts:
        for match in _RANGE_TEXT.finditer(text):
            ends = sorted(float(end) for end in match.groups()[:-2] if end is not None)
            if match["of"] or match["points"]:
                ends = [0.0, float(match["of"])] if match["of"] else [1.0, float(match["points"])]
            if ends[0] < ends[1]:
                yield Scale(*ends)
        if _REWARD.match(text):
            yield from (Scale(0.0, float(match[1])) for match in _DENOMINATOR.finditer(text) if float(match[1]))


def _grade_list_scale(text: str) -> set[Scale]:
    """Return the range of a list of at least three consecutive grades; empty if there is no such list."""
    numbers = sorted({int(match[1]) for match in _LIKERT.finditer(text)})
    is_list = len(numbers) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]
    return {Scale(float(numbers[0]), float(numbers[-1]))} if is_list else set()


def _join_bands(scales: set[Scale]) -> set[Scale]:
    """Return the whole range if the scales are consecutive bands, such as 1 to 3, 4 to 7 and 8 to 10; else `scales`."""
    bands = sorted(scales)
    follow = not scales & {UNIT, HUNDRED} and all(
        0 <= after.low - before.high <= 1 for before, after in pairwise(bands)
    )
    return {Scale(bands[0].low, bands[-1].high)} if follow else scales


def _contradiction_error(declared: Scale, scales: set[Scale]) -> Exception:
    text = " and ".join(sorted(scale.text for scale in scales))
    remedy = f"declare {min(scales).declaration}, or have the template say `REWARD: <number from {declared.text}>`"
    return field_error(
        FIELD, f"the template asks for a verdict from {text}, but {declared.declaration} is declared; {remedy}"
    )


def _undeclared_error(scales: set[Scale]) -> Exception:
    text = " and ".join(sorted(scale.text for scale in scales))
    other = next(iter(sorted(scales - {UNIT, HUNDRED})), min(scales))
    remedy = f"add `{other.declaration}` where the template is set, or as the template's first line"
    if len(scales) > 1:
        remedy += f", or have the template say `REWARD: <number from {other.text}>`"
    return field_error(FIELD, f"the template names the range {text}; {remedy}")
