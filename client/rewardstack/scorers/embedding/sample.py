"""Scores of samples: from the vectors of their texts, or without vectors if these are not needed or not available."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardstack.core.wire import Record
from rewardstack.errors import RejectedError, RewardstackError
from rewardstack.score import NO_REFERENCE, Item, Score
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.embedding.lexical import lexical_similarity
from rewardstack.scorers.embedding.options import Options, read_options
from rewardstack.scorers.embedding.penalties import length_penalty
from rewardstack.scorers.embedding.server import TOO_MUCH, Found
from rewardstack.scorers.embedding.similarity import SLICE, Vector, similarities

SOURCE = "embedding"
NOWHERE = Destination((), "")


class Sample(NamedTuple):
    """A sample that needs vectors: its solution is not blank, and it has a reference."""

    solution: str
    references: tuple[str, ...]
    options: Options
    destination: Destination

    @property
    def candidate(self) -> str:
        """The text to embed for the solution."""
        return self.options.prefix + self.solution

    @property
    def targets(self) -> list[str]:
        """The texts to embed for the references."""
        return [self.options.prefix + reference for reference in self.references]


def read_sample(item: Item, find_destination: Callable[[Mapping[str, Any]], Destination]) -> Sample | Score:
    """Return the sample of an item, or the item's score if that needs no vectors.

    Raises:
        RequestError: an option is malformed.
        ConfigError: `find_destination`, which returns the server, raised it.
    """
    options, destination = read_options(item.extra), find_destination(item.extra)
    if not item.references:
        return Score.unscored(NO_REFERENCE, SOURCE)
    if not item.solution.strip():
        return Score(0.0, reason="the response is empty", source=SOURCE)
    return Sample(item.solution, item.references, options, destination)


def lexical_score(item: Item) -> Score:
    """Return the item's lexical similarity to its best reference, as a score with the status `fallback`."""
    sample = Sample(item.solution, item.references, read_options(item.extra), NOWHERE)
    alike = {one: lexical_similarity(sample.solution, one) for one in sample.references}
    return replace(_best(sample, alike), status="fallback")


async def vector_scores(samples: Sequence[Sample], found: Mapping[str, Found]) -> list[Score]:
    """Return the scores of samples, given the vector or the error of each text in `found`.

    Yield to the event loop after `SLICE` comparisons.
    """
    pairs = [_pairs(sample, found) for sample in samples]
    compared = [pair for one in pairs if isinstance(one, dict) for pair in one.values()]
    values: list[float] = []
    for start in range(0, len(compared), SLICE):
        values += similarities(compared[start : start + SLICE])
        await asyncio.sleep(0)
    alike = iter(values)
    scores = []
    for sample, one in zip(samples, pairs, strict=True):
        if isinstance(one, dict):
            one = _best(sample, {reference: next(alike) for reference in one})
        scores.append(one)
    return scores


def _pairs(sample: Sample, found: Mapping[str, Found]) -> dict[str, tuple[Vector, Vector]] | Score:
    """Return the two vectors to compare for each reference, or the sample's score if there is nothing to compare.

    The sample is unscored if the server refuses its response or all its references, e.g. because they are too long.
    """
    candidate = found[sample.candidate]
    if isinstance(candidate, RewardstackError):
        if _is_refusal(candidate):
            return Score.unscored(f"the server refuses the response: {candidate}", SOURCE)
        return Score.failed(str(candidate), SOURCE)
    pairs: dict[str, tuple[Vector, Vector]] = {}
    refusal: RewardstackError | None = None
    for reference, text in zip(sample.references, sample.targets, strict=True):
        target = found[text]
        if not isinstance(target, RewardstackError):
            if len(target) != len(candidate):
                return Score.failed(f"vectors of {len(candidate)} and of {len(target)} numbers", SOURCE)
            pairs[reference] = candidate, target
        elif _is_refusal(target):
            refusal = target
        else:
            return Score.failed(str(target), SOURCE)
    return pairs or Score.unscored(f"the server refuses the reference: {refusal}", SOURCE)


def _is_refusal(error: RewardstackError) -> bool:
    return isinstance(error, RejectedError) and error.status in TOO_MUCH


def _best(sample: Sample, alike: Mapping[str, float]) -> Score:
    """Return the highest of the similarities `alike`, times the length penalty for this reference."""
    best = max(alike, key=lambda reference: alike[reference])
    if sample.options.penalty == "none":
        return Score(alike[best], source=SOURCE)
    factor = _penalty(sample, best)
    parts = {"similarity": alike[best], "length_penalty": factor}
    return Score(alike[best] * factor, source=SOURCE, parts=parts)


def _penalty(sample: Sample, reference: str) -> float:
    words = len(sample.solution.split()), len(reference.split())
    return length_penalty(sample.options.penalty, sample.options.threshold, *words)


def comparisons(sample: Sample, found: Mapping[str, Found]) -> list[Record]:
    """Return the similarity and the penalty of each reference, or the error, for a trace."""
    candidate = found[sample.candidate]
    facts: list[Record] = []
    for reference, text in zip(sample.references, sample.targets, strict=True):
        target = found[text]
        error = next((one for one in (candidate, target) if isinstance(one, RewardstackError)), None)
        if error is not None:
            facts.append({"reference": reference, "error": str(error)})
        elif not isinstance(candidate, RewardstackError) and not isinstance(target, RewardstackError):
            alike = similarities([(candidate, target)])[0] if len(candidate) == len(target) else 0.0
            numbers = {"cosine": 2 * alike - 1, "similarity": alike, "length_penalty": _penalty(sample, reference)}
            facts.append({"reference": reference, **numbers})
    return facts
