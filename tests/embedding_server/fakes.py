"""Models that fail and stall as no real one can be made to."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from services.embedding.tei_python.bodies import Input
from services.embedding.tei_python.errors import EmptyError, TeiError
from services.embedding.tei_python.replies import Vectors
from services.embedding.tei_python.tokenization import Encoding

SECONDS = 10.0
"""Longer than anything takes that does not hang."""


class Words:
    """A tokenizer to which the length of each word is a token."""

    def encode(
        self, inputs: Sequence[Input], truncate: bool, direction: str, prompt_name: str | None
    ) -> list[Encoding | TeiError]:
        """The tokens of each input; nothing is ever cut."""
        counts = [[len(word) for word in str(value).split()] for value in inputs]
        return [Encoding(ids, ids) if ids else EmptyError("empty") for ids in counts]


class Gated:
    """A model whose vectors hold the number of tokens and their sum, and which waits where it is told to.

    Args:
        broken: what it raises, or returns, instead; None where it works.
    """

    dimensions = 2

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.batches: list[list[int]] = []
        self.broken: Exception | float | None = None

    def embed(self, encodings: Sequence[Encoding]) -> Vectors:
        """The vectors."""
        self.batches.append([len(encoding.ids) for encoding in encodings])
        self.entered.set()
        assert self.gate.wait(SECONDS)
        if isinstance(self.broken, Exception):
            raise self.broken
        rows = [[len(encoding.ids), sum(encoding.ids)] for encoding in encodings]
        return np.asarray(rows, dtype=np.float32) * np.float32(1.0 if self.broken is None else self.broken)
