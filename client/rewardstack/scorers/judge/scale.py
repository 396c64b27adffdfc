"""The scale of a judge's verdict: declared as `score_range`, or found in the text of the prompt template.

The sentences with the word REWARD are searched first, then the other sentences. A template whose text names another
range than the scale is rejected: with "from 1 to 10" in the text and a scale from 0 to 1, the worst verdict would be
the best reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from unicodedata import normalize

from rewardstack.core.fields import field_error
from rewardstack.core.json_types import is_finite, is_list, plain

FIELD = "score_range"
LARGEST = 1e6
"""Maximum absolute value of the ends of a scale."""


class Scale(NamedTuple):
    """The range of a verdict, from worst to best."""

    low: float = 0.0
    high: float = 1.0

    @property
    def words(self) -> str:
        """The range in words, such as "0 to 1"."""
        return f"{self.low:g} to {self.high:g}"

    @property
    def line(self) -> str:
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
_JOINERS = rf"{_NOTE}(?:-|\u2013|\u2014|~|\.\.|to|through|up to|bis|\u5230|\u81f3|\u304b\u3089)\s{{0,3}}"
_IS = r"\s{0,3}(?:is|means|being|stands for|=)\s"
_MENTION = re.compile(
    rf"(?<![A-Za-z0-9.\-])(?:{_NUMBER}{_JOINERS}{_NUMBER}|between\s{{1,3}}{_NUMBER}{_NOTE}and\s{{1,3}}{_NUMBER}"
    rf"|\[\s{{0,3}}{_NUMBER}\s{{0,3}},\s{{0,3}}{_NUMBER}\s{{0,3}}\]"
    rf"|{_NUMBER}{_IS}[^.\n]{{1,80}}?\s{_NUMBER}(?={_IS}))"
    r"(?![A-Za-z0-9]|\.\d)(?!\s{0,3}(?:sentence|word|line|paragraph|step|token|character)s?\b)"
    rf"|\bout\s{{1,3}}of\s{{1,3}}(?P<of>\d{{1,4}})(?![A-Za-z0-9]|\.\d)|\b(?P<points>\d{{1,3}})[- ]point\s",
    re.IGNORECASE,
)
_LIKERT = re.compile(r"^\W{0,4}(?:score|rating|grade|level)?\s{0,3}(\d{1,3})\s{0,3}[:=]", re.IGNORECASE | re.MULTILINE)
"""The start of a line in a list of grades, such as `Score 5: perfect`."""
_SPELLED = (*("zero", "one", "two", "three", "four", "five"), *("six", "seven", "eight", "nine", "ten"))
_WORDS = {word: str(at) for at, word in enumerate(_SPELLED)}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_DENOMINATOR = re.compile(r"[>\])}_]\s?/\s?(\d{1,4})(?!\d)")
"""The denominator after a placeholder, as in `REWARD: <number>/10`."""
_SENTENCE = re.compile(r"\n|(?<=[.!?;\u3002\uff01\uff1f])\s")
_REWARD = re.compile(r"\breward\b", re.IGNORECASE)
_LABEL = re.compile(r"[\W\d]{0,8}[A-Za-z][\w ]{0,40}:\s{0,3}[<\[({]")
"""The start of a line of the reply format that is not the verdict, such as `CORRECTNESS: <0 to 10>`."""
_CRITERION = re.compile(r"\b(?:each|every|criteri(?:on|a)|aspects?|dimensions?)\b", re.IGNORECASE)
_RATING = re.compile(r"\b(?:rate|rating|grade|score|scale|verdict|points?|mark)\b", re.IGNORECASE)


def read_range(value: Any) -> Scale | None:
    """Parse a `score_range`; return None if there is none.

    Raises:
        RequestError: `value` is not two numbers with the lower one first.
    """
    value = plain(value)
    if value is None:
        return None
    if not is_list(value) or len(value) != 2 or not all(is_finite(one) and abs(one) <= LARGEST for one in value):
        raise field_error(FIELD, f"expected two numbers such as [1, 10], got {str(value)[:50]!r}")
    scale = Scale(*map(float, value))
    if not scale.low < scale.high:
        raise field_error(FIELD, f"expected the lower end first, got [{value[0]:g}, {value[1]:g}]")
    return scale


def scale_of(text: str, declared: Scale | None) -> Scale:
    """Return the scale of a template's verdicts.

    Args:
        text: the text of the template.
        declared: the declared `score_range`; None for none.

    Raises:
        RequestError: the text names ranges, but not the declared one; or nothing is declared, and the text names
            several ranges, or one that is neither 0 to 1 nor 0 to 100.
    """
    named = _named(text, with_criteria=declared is None)
    if declared is not None:
        if named and declared not in named:
            raise _contradiction(declared, named)
        return declared
    if len(named) > 1 or not named <= {UNIT, HUNDRED}:
        raise _undeclared(named)
    return next(iter(named), UNIT)


def _named(text: str, *, with_criteria: bool) -> set[Scale]:
    """Return the ranges in the sentences with the word REWARD, else those in sentences that may describe the verdict.

    Args:
        text: the text of the template.
        with_criteria: whether sentences about criteria count as well.
    """
    text = _WORD.sub(lambda word: _WORDS[word[0].lower()], normalize("NFKC", text))
    sentences = [one for one in _SENTENCE.split(text) if one.strip()]
    verdict = [(one, _REWARD.search(one)) for one in sentences]
    ranges = set(_ranges(one[found.start() :] for one, found in verdict if found))
    if not ranges:
        ranges = set(_ranges(one[: found.start()] for one, found in verdict if found))
    if ranges:
        return ranges
    others = [one for one, found in verdict if not found and not _LABEL.match(one)]
    if not with_criteria:
        others = [one for one in others if _RATING.search(one) and not _CRITERION.search(one)]
    return set(_ranges(others)) or _grades(text)


def _ranges(texts: Iterable[str]) -> Iterable[Scale]:
    for text in texts:
        for found in _MENTION.finditer(text):
            ends = sorted(float(end) for end in found.groups()[:-2] if end is not None)
            if found["of"] or found["points"]:
                ends = [0.0, float(found["of"])] if found["of"] else [1.0, float(found["points"])]
            if ends[0] < ends[1]:
                yield Scale(*ends)
        if _REWARD.match(text):
            yield from (Scale(0.0, float(found[1])) for found in _DENOMINATOR.finditer(text) if float(found[1]))


def _grades(text: str) -> set[Scale]:
    """Return the range of a list of grades; empty unless there are at least three, and they are consecutive."""
    numbers = sorted({int(found[1]) for found in _LIKERT.finditer(text)})
    is_list = len(numbers) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]
    return {Scale(float(numbers[0]), float(numbers[-1]))} if is_list else set()


def _contradiction(declared: Scale, named: set[Scale]) -> Exception:
    words = " and ".join(sorted(scale.words for scale in named))
    remedy = f"declare {min(named).line}, or have the template say `REWARD: <number from {declared.words}>`"
    return field_error(
        FIELD, f"the template asks for a verdict from {words}, and {declared.line} is declared; {remedy}"
    )


def _undeclared(named: set[Scale]) -> Exception:
    words = " and ".join(sorted(scale.words for scale in named))
    other = next(iter(sorted(named - {UNIT, HUNDRED})), min(named))
    remedy = f"add `{other.line}` where the template is set, or as its first line"
    if len(named) > 1:
        remedy += f", or have it say `REWARD: <number from {other.words}>`"
    return field_error(FIELD, f"the template names the range {words}; {remedy}")
