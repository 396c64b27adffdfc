"""Compute the scores of samples from the vectors of their texts.

Samples with a blank response or without a reference are scored without vectors. If no embedding server answers, a
sample can be scored by its lexical similarity instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.wire import Record
from rewardstack.errors import RejectedError, RewardstackError
from rewardstack.score import NO_REFERENCE, Item, Score
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.embedding.lexical import lexical_similarity
from rewardstack.scorers.embedding.options import Options, read_options
from rewardstack.scorers.embedding.penalties import length_penalty
from rewardstack.scorers.embedding.server import TEXT_REFUSED, VectorOrError
from rewardstack.scorers.embedding.similarity import SLICE, Vector, similarities

SOURCE = "embedding"
NO_SERVER = Destination((), "")


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
    """Return the sample of an item, or the item's score if no vectors are needed.

    Args:
        item: the item.
        find_destination: returns the servers and the key for an item's `extra_info`.

    Raises:
        RequestError: an option or the sample's `server_url` is malformed.
        SettingsError: no server is set.
    """
    options, destination = read_options(item.extra), find_destination(item.extra)
    if not item.references:
        return Score.unscored(NO_REFERENCE, SOURCE, cause=Cause.NO_REFERENCE)
    if not item.solution.strip():
        return Score(0.0, reason="the response is empty", source=SOURCE)
    return Sample(item.solution, item.references, options, destination)


def lexical_score(item: Item) -> Score:
    """Return the item's lexical similarity to its best reference, as a score with the status `fallback`."""
    sample = Sample(item.solution, item.references, read_options(item.extra), NO_SERVER)
    similarity_of = {one: lexical_similarity(sample.solution, one) for one in sample.references}
    return replace(_best_score(sample, similarity_of), status="fallback")


async def vector_scores(samples: Sequence[Sample], vectors: Mapping[str, VectorOrError]) -> list[Score]:
    """Return the scores of samples, given the vector or the error of each text.

    Yield to the event loop after every `SLICE` comparisons.
    """
    pairs = [_vector_pairs(sample, vectors) for sample in samples]
    compared = [pair for one in pairs if isinstance(one, dict) for pair in one.values()]
    similarity_values: list[float] = []
    for start in range(0, len(compared), SLICE):
        similarity_values += similarities(compared[start : start + SLICE])
        await asyncio.sleep(0)
    remaining = iter(similarity_values)
    scores = []
    for sample, one in zip(samples, pairs, strict=True):
        if isinstance(one, dict):
            one = _best_score(sample, {reference: next(remaining) for reference in one})
        scores.append(one)
    return scores


def _vector_pairs(sample: Sample, vectors: Mapping[str, VectorOrError]) -> dict[str, tuple[Vector, Vector]] | Score:
    """Return a pair of vectors for each reference: the vector of the response and the vector of the reference.

    References that the server refuses, e.g. because they are too long, are left out. In two cases, return the sample's
    score instead of the pairs: the sample is unscored if the server refuses the response or all references, and it
    fails if a text has another error or if two vectors differ in length.
    """
    candidate = vectors[sample.candidate]
    if isinstance(candidate, RewardstackError):
        if _is_text_refused(candidate):
            return Score.unscored(f"the server refuses the response: {candidate}", SOURCE, cause=candidate.cause)
        return candidate.as_score(SOURCE)
    pairs: dict[str, tuple[Vector, Vector]] = {}
    refusal: RewardstackError | None = None
    for reference, text in zip(sample.references, sample.targets, strict=True):
        target = vectors[text]
        if not isinstance(target, RewardstackError):
            if len(target) != len(candidate):
                return Score.failed(
                    f"the server returned vectors of different lengths: {len(candidate)} and {len(target)}",
                    SOURCE,
                    Cause.INVALID_REPLY,
                )
            pairs[reference] = candidate, target
        elif _is_text_refused(target):
            refusal = target
        else:
            return target.as_score(SOURCE)
    if pairs or refusal is None:
        return pairs
    return Score.unscored(f"the server refuses the reference: {refusal}", SOURCE, cause=refusal.cause)


def _is_text_refused(error: RewardstackError) -> bool:
    return isinstance(error, RejectedError) and error.status in TEXT_REFUSED


def _best_score(sample: Sample, similarity_of: Mapping[str, float]) -> Score:
    """Return the similarity to the most similar reference, times the penalty factor for this reference."""
    best = max(similarity_of, key=lambda reference: similarity_of[reference])
    if sample.options.penalty == "none":
        return Score(similarity_of[best], source=SOURCE)
    factor = _penalty_factor(sample, best)
    parts = {"similarity": similarity_of[best], "length_penalty": factor}
    return Score(similarity_of[best] * factor, source=SOURCE, parts=parts)


def _penalty_factor(sample: Sample, reference: str) -> float:
    words = len(sample.solution.split()), len(reference.split())
    return length_penalty(sample.options.penalty, sample.options.threshold, *words)


def describe_comparisons(sample: Sample, vectors: Mapping[str, VectorOrError]) -> list[Record]:
    """Return records for a trace, one for each reference: its similarity and penalty factor, or else an error."""
    candidate = vectors[sample.candidate]
    rows: list[Record] = []
    for reference, text in zip(sample.references, sample.targets, strict=True):
        target = vectors[text]
        error = next((one for one in (candidate, target) if isinstance(one, RewardstackError)), None)
        if error is not None:
            rows.append({"reference": reference, "error": str(error)})
        elif not isinstance(candidate, RewardstackError) and not isinstance(target, RewardstackError):
            similarity = similarities([(candidate, target)])[0] if len(candidate) == len(target) else 0.0
            factor = _penalty_factor(sample, reference)
            numbers = {"cosine": 2 * similarity - 1, "similarity": similarity, "length_penalty": factor}
            rows.append({"reference": reference, **numbers})
    return rows
