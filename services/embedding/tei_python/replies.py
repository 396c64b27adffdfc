"""Replies as JSON, written as fast as the interpreter can: one holds ten thousand numbers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

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


def rows(vectors: Vectors) -> list[str]:
    """Each vector as a JSON array; nine digits tell every float32 from every other."""
    pattern = _pattern(vectors.shape[1])
    return [pattern % tuple(row) for row in vectors.tolist()]


def embeddings(vectors: Vectors) -> bytes:
    """The body of `/embed`."""
    return f"[{','.join(rows(vectors))}]".encode()


def openai_embeddings(vectors: Vectors, encoding: str, model: str, tokens: int) -> bytes:
    """The body of `/v1/embeddings`.

    Args:
        vectors: to send.
        encoding: `float`, or `base64` for the float32 themselves, little-endian.
        model: its name.
        tokens: of the inputs.
    """
    shown = rows(vectors) if encoding == "float" else [f'"{_base64(row)}"' for row in vectors]
    data = [f'{{"object":"embedding","embedding":{row},"index":{index}}}' for index, row in enumerate(shown)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    named = f'"model":{dumps(model).decode()},"usage":{dumps(usage).decode()}'
    return f'{{"object":"list","data":[{",".join(data)}],{named}}}'.encode()


def dumps(value: Any) -> bytes:
    """JSON as serde_json writes it: nothing between its parts, text as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


@lru_cache(maxsize=8)
def _pattern(dimensions: int) -> str:
    return f"[{','.join(['%.9g'] * dimensions)}]"
