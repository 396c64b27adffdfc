"""`qa_match`: compare the answer of a question about facts with reference answers, ignoring case and articles.

The normalization is that of SQuAD (https://arxiv.org/abs/1606.05250): lower case, no ASCII punctuation, no articles.
Search-R1 and verl compare in this way (`verl/utils/reward_score/search_r1_like_qa_em.py`), and for `f1` HotpotQA and
ReSearch.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rewardstack.cause import Cause
from rewardstack.core.fields import Fields
from rewardstack_rules.functions.builtin.answer_places import PLACES, count_tags, find_answer
from rewardstack_rules.functions.outcome import Outcome, Unscored

PUNCTUATION = ("ascii", "unicode")
MAX_LISTED = 5
"""With `subem`, an answer has at most this many times the words of a reference: a list of guesses pays nothing."""
MANY_TAGS = 0.25
"""Factor of the value of a response with more than `max_tags` tags, as in verl."""
_TYPOGRAPHIC = str.maketrans("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014", "''\"\"----")
_ASCII = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Matches a word, or one character of a script without spaces between words."""
_CLOSED = ({"yes"}, {"no"}, {"noanswer"})
"""Answers that HotpotQA compares as a whole."""
Words = Sequence[str]


def qa_match(
    response: str,
    references: Sequence[str],
    metric: str | None = None,
    answer_in: str | None = None,
    floor: float | None = None,
    max_tags: int | None = None,
    punctuation: str | None = None,
) -> Outcome:
    """Return how well the answer fits the best of the references.

    Args:
        response: the policy's text.
        references: right answers; a JSON list of texts counts as several.
        metric: `em` (default: 1 if the words are equal), `subem` (1 if the answer contains the reference's words, and
            has at most five times as many), `f1` (the harmonic mean of precision and recall of words) or `hotpotqa_f1`
            (the same, but `yes`, `no` and `noanswer` are equal or worth nothing).
        answer_in: where the answer is: `answer` (default: the last `<answer>`), `finish`, `box`, `announced`, `fence`
            or `all` (`answer_places.PLACES`).
        floor: lowest value of a response that has an answer, from 0 to 1; 0 by default.
        max_tags: with more `<answer>` tags than this, the value is a quarter, as in verl; unlimited by default.
        punctuation: which characters are ignored: `ascii` (default) or `unicode`, also those of other scripts.

    Raises:
        Unscored: nothing is left of the references without articles and punctuation.
        RequestError: an option is malformed.
    """
    numbers = Fields({"floor": floor, "max_tags": max_tags})
    options = Fields({"metric": metric, "answer_in": answer_in, "punctuation": punctuation})
    compare = METRICS[options.choice("metric", [*METRICS])]
    place, removed = options.choice("answer_in", [*PLACES]), options.choice("punctuation", PUNCTUATION)
    lowest, limit = numbers.number("floor", 0.0, 0, 1), numbers.integer("max_tags", None, 1, 1000)
    expected = [words for text in _alternatives(references) if (words := _words(text, removed))]
    if not expected:
        raise Unscored("nothing is left of the reference without articles and punctuation", cause=Cause.BAD_REFERENCE)
    answer, fault = find_answer(response, place)
    words = _words(answer, removed)
    if not words:
        return _outcome(0.0, 0.0, fault or "the answer is empty")
    value = max(lowest, *(compare(words, reference) for reference in expected))
    if limit is not None and count_tags(response) > limit:
        return _outcome(1.0, value * MANY_TAGS, f"the response has more than {limit} <answer> tags")
    return _outcome(1.0, value, "" if value == 1 else f"wrong answer: {answer!r:.80}")


def _outcome(form: float, value: float, reason: str) -> Outcome:
    return Outcome(value, reason, {"format": form, "accuracy": value})


def _alternatives(references: Sequence[str]) -> list[str]:
    """Return the references; a JSON list of texts in one of them counts as several."""
    found: list[str] = []
    for reference in references:
        try:
            listed = json.loads(reference) if reference.lstrip()[:1] == "[" else None
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            found += listed
        else:
            found.append(reference)
    return found


def _words(text: str, punctuation: str) -> Words:
    """Return the words that are compared: lower case, without punctuation and articles."""
    text = unicodedata.normalize("NFC", text).translate(_TYPOGRAPHIC).lower().translate(_ASCII)
    if punctuation == "unicode":
        text = "".join(one for one in text if not unicodedata.category(one).startswith("P"))
    return _WORD.findall(_ARTICLES.sub(" ", text))


def _em(answer: Words, reference: Words) -> float:
    return float(answer == reference)


def _subem(answer: Words, reference: Words) -> float:
    if len(answer) > MAX_LISTED * len(reference):
        return 0.0
    places = range(len(answer) - len(reference) + 1)
    return float(any(answer[at : at + len(reference)] == reference for at in places))


def _f1(answer: Words, reference: Words) -> float:
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference))


def _hotpotqa_f1(answer: Words, reference: Words) -> float:
    is_closed = {*answer} in _CLOSED or {*reference} in _CLOSED
    return _em(answer, reference) if is_closed else _f1(answer, reference)


METRICS: Mapping[str, Callable[[Words, Words], float]] = {
    "em": _em,
    "subem": _subem,
    "f1": _f1,
    "hotpotqa_f1": _hotpotqa_f1,
}
"""The functions of the words of answer and reference, by the value of `metric`."""
