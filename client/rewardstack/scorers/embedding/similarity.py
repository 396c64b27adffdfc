"""Similarity of texts, from their vectors.

Vectors from the server are normalized to length 1 and rounded to float16 before any use, so a similarity is the same
whether the vectors come from the server or from the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float16]
"""The vector of a text: shape (dimensions,); its norm is 1, or it is all zeros."""

SLICE = 256
"""Maximum number of pairs to compare at a time, to limit memory and to block the event loop for at most about 10 ms."""


def normalize(vectors: NDArray[Any]) -> NDArray[np.float16]:
    """Return vectors normalized to length 1, as float16; a zero vector stays zero.

    Args:
        vectors: finite vectors, shape (texts, dimensions).
    """
    scaled = vectors.astype(np.float64)
    scaled /= np.maximum(np.abs(scaled).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float16)


def similarities(pairs: Sequence[tuple[Vector, Vector]]) -> list[float]:
    """Return the cosine of each pair, mapped from [-1, 1] to [0, 1]; 0 if a vector of the pair is all zeros.

    Args:
        pairs: pairs of vectors, `SLICE` at most; the two vectors of a pair have the same number of dimensions.
    """
    results = [0.0] * len(pairs)
    by_dimensions: dict[int, list[int]] = {}
    for index, (vector, _) in enumerate(pairs):
        by_dimensions.setdefault(len(vector), []).append(index)
    for indices in by_dimensions.values():
        for index, value in zip(indices, _same_length_similarities([pairs[index] for index in indices]), strict=True):
            results[index] = value
    return results


def _same_length_similarities(pairs: Sequence[tuple[Vector, Vector]]) -> list[float]:
    first, second = (np.stack([pair[side] for pair in pairs]).astype(np.float64) for side in (0, 1))
    lengths = np.sqrt(_dot_products(first, first) * _dot_products(second, second))
    cosines = np.clip(_dot_products(first, second) / np.where(lengths == 0.0, 1.0, lengths), -1.0, 1.0)
    values: list[float] = np.where(lengths == 0.0, 0.0, (cosines + 1.0) / 2.0).tolist()
    return values


def _dot_products(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = np.einsum("nd,nd->n", first, second)
    return products
