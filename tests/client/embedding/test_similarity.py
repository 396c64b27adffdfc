"""Similarity of vectors, and what a difference in length costs."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack.scorers.embedding.options import read_options
from rewardstack.scorers.embedding.penalties import PENALTIES, length_penalty
from rewardstack.scorers.embedding.sample import NO_SERVER, Sample, vector_scores
from rewardstack.scorers.embedding.similarity import SLICE, Vector, normalize, similarities

CASES = json.loads((Path(__file__).parents[2] / "cases" / "embedding_penalties.json").read_text())


def vectors(count: int, dimensions: int = 384) -> list[Vector]:
    """Different vectors, as they are kept."""
    return list(normalize(np.random.default_rng(7).normal(size=(count, dimensions))))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_penalties(case: dict[str, Any]) -> None:
    """Each penalty gives the factor of the table, and the table has them all."""
    found = {name: length_penalty(name, case["threshold"], case["candidate"], case["reference"]) for name in PENALTIES}
    assert found == pytest.approx(case["factors"], abs=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([3.0, 0.0], [5.0, 0.0], 1.0),
        ([3.0, 0.0], [0.0, 5.0], 0.5),
        ([3.0, 0.0], [-5.0, 0.0], 0.0),
        ([3.0, 4.0], [4.0, 3.0], (0.96 + 1) / 2),
        ([0.0, 0.0], [1.0, 0.0], 0.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([1e300, 0.0], [1e-300, 0.0], 1.0),
    ],
)
def test_cosine_from_0_to_1(first: list[float], second: list[float], expected: float) -> None:
    """The cosine of [-1, 1] is mapped to [0, 1] whatever the vectors' lengths, and zero vectors score 0."""
    one, other = normalize(np.array([first, second]))
    assert similarities([(one, other)]) == pytest.approx([expected], abs=1e-3)


def test_in_range_whatever_is_rounded() -> None:
    """No rounding lifts a similarity above 1, and a vector is as good as its own likeness."""
    assert all(1 - 1e-9 < value <= 1 for value in similarities([(one, one) for one in vectors(2000)]))


def test_company_does_not_matter() -> None:
    """A pair's similarity is the same to the last bit, whatever pairs are compared with it."""
    some = vectors(2 * SLICE + 6)
    pairs = list(zip(some[::2], some[1::2], strict=True))
    together = similarities(pairs)
    assert [similarities([pair])[0] for pair in pairs] == together
    assert together[3:] == similarities(pairs[3:])


def test_different_dimensions_side_by_side() -> None:
    """Pairs of different numbers of dimensions are compared in one call, each with its own."""
    small, large = vectors(2, 8), vectors(2, 16)
    pairs = [(small[0], small[0]), (large[0], large[1]), (small[0], small[1])]
    assert [similarities([pair])[0] for pair in pairs] == similarities(pairs)


def test_length_one_in_float16() -> None:
    """What is kept of a vector is its direction, in two bytes a number."""
    kept = normalize(np.array([[3e9, 4e9], [0.0, 0.0]]))
    assert np.float16 == kept.dtype
    assert [1.0, 0.0] == pytest.approx([math.hypot(*map(float, one)) for one in kept], abs=1e-3)


async def test_large_batches_yield() -> None:
    """While the vectors of a large batch are compared, other work of the event loop has its turns."""
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    [vector] = vectors(1)
    samples = [Sample("a", ("b",), read_options({}), NO_SERVER)] * (10 * SLICE)
    found = {text: vector for one in samples[:1] for text in (one.candidate, *one.targets)}
    others = asyncio.create_task(work())
    scores = await vector_scores(samples, found)
    others.cancel()
    assert len(scores) == len(samples) and {round(one.value or 0.0, 6) for one in scores} == {1.0}
    assert turns >= 10
