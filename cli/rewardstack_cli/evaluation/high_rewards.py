"""Show which features of responses correlate with high rewards in a sample log, to find how a policy hacks its reward.

For each route, the samples with high rewards are compared with the other samples by length, repetition, beginnings and
phrases of the responses. About a fifth of the rewards count as high; if a reward is high, all rewards that equal it
are high, too. The log is the file that `REWARDSTACK_SAMPLE_LOG` names.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

LOG_FIELDS = frozenset({"at", "route", "status", "value", "solution_str", "owner"})
"""Fields of each line of a sample log; a file whose first line has all of them counts as a sample log."""
SCORED = ("ok", "fallback")
HIGH_QUANTILE = 0.8
"""A reward is high if it reaches this quantile of the route's rewards, and is above the route's lowest reward."""
MAX_SAMPLES = 2000
"""Maximum number of samples of a route to compare; the last samples are used."""
PHRASE_WORDS = 4
"""Number of words in a phrase."""
BEGINNING_LENGTH = 40
"""Length of a beginning, in characters."""
MAX_LISTED = 5
MIN_SHARE, MIN_DIFFERENCE = 0.1, 0.2
"""A phrase or beginning is listed if at least `MIN_SHARE` of the high samples contain it, and if this share exceeds its
share in the other samples by at least `MIN_DIFFERENCE`. At least two high samples must contain it."""
WORD = re.compile(r"\w+")


class Sample(NamedTuple):
    """A reward and the response that got it."""

    value: float
    text: str

    @property
    def phrases(self) -> list[str]:
        """All sequences of `PHRASE_WORDS` words, in order."""
        words = WORD.findall(self.text.lower())
        return [" ".join(words[start : start + PHRASE_WORDS]) for start in range(len(words) - PHRASE_WORDS + 1)]


def is_sample_log(row: Mapping[str, Any]) -> bool:
    """Return whether `row`, the first row of a file, is a line of a sample log."""
    return row.keys() >= LOG_FIELDS


def describe(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return lines that describe, for each route, the features that correlate with high rewards.

    Args:
        rows: the lines of a sample log; lines without a reward are ignored.
    """
    routes: dict[str, list[Sample]] = {}
    for row in rows:
        if row.get("status") in SCORED and isinstance(value := row.get("value"), (int, float)):
            samples = routes.setdefault(str(row["route"]), [])
            samples.append(Sample(float(value), str(row["solution_str"])))
            if len(samples) >= 2 * MAX_SAMPLES:
                del samples[:-MAX_SAMPLES]
    if not routes:
        return ["no sample has a reward"]
    return [
        line for route, samples in sorted(routes.items()) for line in _describe_route(route, samples[-MAX_SAMPLES:])
    ]


def _describe_route(route: str, samples: Sequence[Sample]) -> list[str]:
    values = sorted(sample.value for sample in samples)
    first = f"{route}: {len(samples):,} rewards, mean {statistics.fmean(values):.3g}"
    if values[0] == values[-1]:
        return [f"{first}; all are {values[0]:g}, so none is high"]
    threshold = max(values[int(HIGH_QUANTILE * len(values))], next(value for value in values if value > values[0]))
    high, others = ([one for one in samples if (one.value >= threshold) is side] for side in (True, False))
    return [
        f"{first}; {len(high):,} are high (at least {threshold:g})",
        _describe_difference("length", high, others, lambda one: float(len(one.text)), "{:,.0f} characters"),
        _describe_difference("repetition", high, others, _repetition, "{:.1%} of phrases"),
        *_describe_frequent("beginning", [[_beginning(one)] for one in high], [[_beginning(one)] for one in others]),
        *_describe_frequent("phrase", [one.phrases for one in high], [one.phrases for one in others]),
    ]


def _describe_difference(
    name: str, high: Sequence[Sample], others: Sequence[Sample], figure: Any, template: str
) -> str:
    means = [template.format(statistics.fmean(map(figure, some))) for some in (high, others)]
    pairs = [(figure(one), one.value) for one in (*high, *others)]
    correlation = _correlation(*map(list, zip(*pairs, strict=True)))
    correlation_text = "" if correlation is None else f"; correlation with the reward {correlation:+.2f}"
    return f"  {name}: high {means[0]}, others {means[1]}{correlation_text}"


def _correlation(left: list[float], right: list[float]) -> float | None:
    """Return Pearson's correlation; None if the left values are all equal. The right values must not be all equal."""
    return statistics.correlation(left, right) if min(left) < max(left) else None


def _repetition(sample: Sample) -> float:
    """Return the share of a response's phrases that are repetitions of earlier ones."""
    phrases = sample.phrases
    return 1 - len(set(phrases)) / len(phrases) if phrases else 0.0


def _beginning(sample: Sample) -> str:
    return " ".join(sample.text[: 2 * BEGINNING_LENGTH].split())[:BEGINNING_LENGTH]


def _describe_frequent(name: str, high: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> list[str]:
    """Return lines about texts that are much more frequent in samples with high rewards than in the other samples.

    A text is left out if it has two or more words in common with a text that is already listed.
    """
    counts_high = Counter(text for texts in high for text in set(texts) if text)
    share_by_text = {
        text: count / len(high) for text, count in counts_high.items() if count > 1 and count / len(high) >= MIN_SHARE
    }
    counts_others = Counter(text for texts in others for text in set(texts) if text in share_by_text)
    candidates = [(share - counts_others[text] / len(others), share, text) for text, share in share_by_text.items()]
    listed: list[tuple[float, float, str]] = []
    for one in sorted((one for one in candidates if one[0] >= MIN_DIFFERENCE), key=lambda one: (-one[0], one[2])):
        words = set(one[2].split())
        if len(listed) < MAX_LISTED and all(len(words & set(text.split())) < 2 for _, _, text in listed):
            listed.append(one)
    return [
        f"  {name} {text!r}: in {share:.0%} of the high ones, {share - difference:.0%} of the others"
        for difference, share, text in listed
    ]
