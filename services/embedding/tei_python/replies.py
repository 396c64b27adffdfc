"""Replies as JSON, written as fast as the interpreter can: one holds ten thousand numbers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from services.embedding.tei_python.vectors import Vectors


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
