"""The questions most like a prompt, found among a hundred thousand in about a millisecond.

Every question is sketched by the smallest hashes of its trigrams (bottom-k sketches: Broder 1997, "On the resemblance
and containment of documents"): texts that are alike have many of them in common. An index from hashes to questions
gives the few candidates that rapidfuzz then compares in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

SKETCH = 64
"""Hashes kept of a question; 4 bytes each, and as many for the question's number, whatever its length."""
MAX_VISITS = 50_000
"""Entries of the index that one search reads, rare hashes first."""
CANDIDATES = 32
"""Questions that are compared in full."""
MAX_LENGTH = 10_000
"""Characters of a question, and of a prompt, beyond which it is found as it is or not at all."""
EXACT = re.compile(r"<[/|]?[a-z_]+\|?>|(?<=[a-z])-(?=[a-z])|(\d+|[-+*/^=<>%])")
"""What a likeness must not blur: numbers and signs, in their order. Tags and hyphens within words are no signs."""
MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)

Hashes = NDArray[np.uint32]


class NearestQuestion:
    """An index of questions.

    Args:
        questions: different ones.
        threshold: the least likeness, from 0 to 1: `rapidfuzz.fuzz.ratio`, 1 less the share of characters that must be
            inserted or deleted to make one text of the other.
    """

    def __init__(self, questions: Sequence[str], threshold: float) -> None:
        self._questions = questions
        self._threshold = threshold
        self._lengths = np.array([len(question) for question in questions], dtype=np.int64)
        sketches = [_sketch(one) if len(one) <= MAX_LENGTH else _sketch("") for one in questions]
        owners = np.repeat(np.arange(len(questions), dtype=np.int32), [len(sketch) for sketch in sketches])
        hashes = np.concatenate([_sketch(""), *sketches])
        order = np.argsort(hashes, kind="stable")
        self._owners = owners[order]
        self._hashes, starts = np.unique(hashes[order], return_index=True)
        self._starts = np.append(starts, len(hashes))

    def find(self, prompt: str) -> list[int]:
        """The questions nearest to a prompt.

        Args:
            prompt: written as the questions are, as to case and white space.

        Returns:
            Their positions; several where they are equally near, none where none is near enough.
        """
        if len(prompt) > MAX_LENGTH:
            return []
        exact = _exact(prompt)
        candidates = {row: self._questions[row] for row in self._candidates(prompt)}
        likely = {row: question for row, question in candidates.items() if _exact(question) == exact}
        found = process.extract(prompt, likely, scorer=fuzz.ratio, score_cutoff=100 * self._threshold, limit=None)
        return [row for _, likeness, row in found if likeness == found[0][1]]

    def _candidates(self, prompt: str) -> list[int]:
        """The questions with the most hashes in common with the prompt, of those that are not too long or too short."""
        shared = np.bincount(self._visit(_sketch(prompt)))
        rows = np.flatnonzero(shared)
        lengths = self._lengths[rows]
        near = 2 * np.minimum(lengths, len(prompt)) >= self._threshold * (lengths + len(prompt))
        rows = rows[near]
        if len(rows) > CANDIDATES:
            rows = rows[np.argpartition(shared[rows], -CANDIDATES)[-CANDIDATES:]]
        return [int(row) for row in rows]

    def _visit(self, sketch: Hashes) -> NDArray[np.int32]:
        """The owners of a sketch's hashes, each as often as it has one of them."""
        places = np.searchsorted(self._hashes, sketch)
        places = places[places < len(self._hashes)]
        places = places[np.isin(self._hashes[places], sketch)]
        starts, ends = self._starts[places], self._starts[places + 1]
        rarest = np.argsort(ends - starts)
        rarest = rarest[: 1 + int(np.searchsorted(np.cumsum((ends - starts)[rarest]), MAX_VISITS))]
        visited = [self._owners[starts[at] : ends[at]] for at in rarest]
        return np.concatenate([self._owners[:0], *visited])


def _exact(text: str) -> list[str]:
    return [match for match in EXACT.findall(text) if match]


def _sketch(text: str) -> Hashes:
    """The smallest hashes of a text's trigrams, ascending; a text of one or two characters is one gram."""
    padded = text.ljust(3, "\0") if text else text
    codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    grams = codes[:-2] * MULTIPLIERS[0] + codes[1:-1] * MULTIPLIERS[1] + codes[2:] * MULTIPLIERS[2]
    mixed = (grams ^ (grams >> np.uint64(29))) * MULTIPLIERS[0]
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))[:SKETCH]
