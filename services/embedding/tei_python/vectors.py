"""Vectors as requests want them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Of shape (inputs, dimensions)."""


def finish(vectors: Vectors, normalize: bool, dimensions: int | None) -> Vectors:
    """The vectors as a request wants them.

    Args:
        vectors: as the model gives them, of shape (inputs, dimensions).
        normalize: whether to bring each to length 1, after the cut.
        dimensions: how many to keep; None for all.
    """
    kept = vectors[:, :dimensions]
    if not normalize:
        return kept
    lengths = np.linalg.norm(kept.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(kept * (1.0 / lengths), dtype=np.float32)


def cosines(vectors: Vectors) -> list[float]:
    """The cosine of each vector but the first with the first, to the digits that float32 has."""
    exact = vectors.astype(np.float64)
    lengths = np.linalg.norm(exact, axis=1)
    values = exact[1:] @ exact[0] / (lengths[1:] * lengths[0])
    return [float(f"{value:.8g}") for value in values]
