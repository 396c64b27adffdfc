"""Shows what goes with high rewards in a sample log (`REWARDSTACK_SAMPLE_LOG`): how a policy hacks its reward is found.

The samples of a route are divided: the fifth with the highest rewards (more if equal), and the others.
Length, repetition, beginnings and phrases of the responses are compared between the two.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

FIELDS = frozenset({"at", "route", "status", "value", "solution_str", "owner"})
"""Fields of each line of a sample log, by which it is known."""
SCORED = ("ok", "fallback")
HIGH = 0.8
"""The quantile of the rewards from which on a reward is high."""
MOST = 2000
"""Number of samples of a route that are compared: the last ones."""
WORDS = 4
"""Number of words in a phrase."""
BEGINNING = 40
"""Number of characters of a beginning."""
LISTED = 5
OFTEN, MORE = 0.1, 0.2
"""A phrase or beginning is listed if it is in this share of the high samples, and that much above the others' share."""
WORD = re.compile(r"\w+")


class Sample(NamedTuple):
    """A reward and the response that got it."""

    value: float
    text: str

    @property
    def phrases(self) -> list[str]:
        """All sequences of `WORDS` words, in order."""
        words = WORD.findall(self.text.lower())
        return [" ".join(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1)]


def is_sample_log(row: Mapping[str, Any]) -> bool:
    """Return whether the first row of a file is a line of a sample log."""
    return row.keys() >= FIELDS


def describe(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return lines that say, for each route, what goes with high rewards.

    Args:
        rows: the lines of a sample log; those without a reward are ignored.
    """
    routes: dict[str, list[Sample]] = {}
    for row in rows:
        if row.get("status") in SCORED and isinstance(value := row.get("value"), (int, float)):
            samples = routes.setdefault(str(row["route"]), [])
            samples.append(Sample(float(value), str(row["solution_str"])))
            if len(samples) >= 2 * MOST:
                del samples[:-MOST]
    if not routes:
        return ["no sample has a reward"]
    return [line for route, samples in sorted(routes.items()) for line in _route(route, samples[-MOST:])]


def _route(route: str, samples: Sequence[Sample]) -> list[str]:
    values = sorted(sample.value for sample in samples)
    first = f"{route}: {len(samples):,} rewards, mean {statistics.fmean(values):.3g}"
    if values[0] == values[-1]:
        return [f"{first}; all are {values[0]:g}, so nothing goes with high ones"]
    least = max(values[int(HIGH * len(values))], next(value for value in values if value > values[0]))
    high, others = ([one for one in samples if (one.value >= least) is side] for side in (True, False))
    return [
        f"{first}; {len(high):,} are high (at least {least:g})",
        _compared("length", high, others, lambda one: float(len(one.text)), "{:,.0f} characters"),
        _compared("repetition", high, others, _repetition, "{:.1%} of phrases"),
        *_frequent("beginning", [[_beginning(one)] for one in high], [[_beginning(one)] for one in others]),
        *_frequent("phrase", [one.phrases for one in high], [one.phrases for one in others]),
    ]


def _compared(name: str, high: Sequence[Sample], others: Sequence[Sample], figure: Any, form: str) -> str:
    means = [form.format(statistics.fmean(map(figure, some))) for some in (high, others)]
    pairs = [(figure(one), one.value) for one in (*high, *others)]
    with_reward = _correlation(*map(list, zip(*pairs, strict=True)))
    told = "" if with_reward is None else f"; correlation with the reward {with_reward:+.2f}"
    return f"  {name}: high {means[0]}, others {means[1]}{told}"


def _correlation(left: list[float], right: list[float]) -> float | None:
    """Return Pearson's correlation; None if the left values are all equal."""
    return statistics.correlation(left, right) if min(left) < max(left) else None


def _repetition(sample: Sample) -> float:
    """Return the share of a response's phrases that occurred in it before."""
    phrases = sample.phrases
    return 1 - len(set(phrases)) / len(phrases) if phrases else 0.0


def _beginning(sample: Sample) -> str:
    return " ".join(sample.text[: 2 * BEGINNING].split())[:BEGINNING]


def _frequent(name: str, high: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> list[str]:
    """Return lines about texts that are in many more of the high samples than of the others, without similar ones."""
    of_high = Counter(text for texts in high for text in set(texts) if text)
    often = {text: count / len(high) for text, count in of_high.items() if count > 1 and count / len(high) >= OFTEN}
    of_others = Counter(text for texts in others for text in set(texts) if text in often)
    found = [(share - of_others[text] / len(others), share, text) for text, share in often.items()]
    listed: list[tuple[float, float, str]] = []
    for one in sorted((one for one in found if one[0] >= MORE), key=lambda one: (-one[0], one[2])):
        words = set(one[2].split())
        if len(listed) < LISTED and all(len(words & set(text.split())) < 2 for _, _, text in listed):
            listed.append(one)
    return [
        f"  {name} {text!r}: in {share:.0%} of the high ones, {share - more:.0%} of the others"
        for more, share, text in listed
    ]
