"""Find the questions most similar to a prompt. A search among 100,000 questions takes about a millisecond.

Each question has a sketch: the smallest hashes of its trigrams (a bottom-k sketch: Broder 1997, "On the resemblance
and containment of documents"). Similar texts share many of these hashes. An index from hashes to questions yields a few
candidates, which rapidfuzz then compares with the prompt in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

SKETCH = 64
"""Maximum number of hashes per question. The index takes 4 bytes for each, and 12 more for each distinct hash."""
MAX_VISITS = 50_000
"""Approximate maximum number of index entries that one search reads. It reads the entries of rare hashes first."""
CANDIDATES = 32
"""Maximum number of questions that are compared with a prompt in full."""
MAX_LENGTH = 10_000
"""Maximum number of characters of a question or prompt. Longer ones are left out of the search for similar texts."""
EXACT = re.compile(r"<[/|]?[a-z_]+\|?>|(?<=[a-z])-(?=[a-z])|(\d+|[-+*/^=<>%])")
"""Captures numbers and operator signs. A prompt and its nearest question must have the same ones in the same order.

Tags and hyphens within words match without a capture, because they are not operator signs.
"""
MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)

Hashes = NDArray[np.uint32]


class NearestQuestion:
    """An index of questions.

    Args:
        questions: the questions, without duplicates.
        threshold: minimum similarity, from 0 to 1. Similarity is `rapidfuzz.fuzz.ratio` / 100: 1 minus the share of the
            characters of both texts that must be inserted or deleted to turn one text into the other.
    """

    def __init__(self, questions: Sequence[str], threshold: float) -> None:
        self._questions = questions
        self._threshold = threshold
        self._lengths = np.array([len(question) for question in questions], dtype=np.int64)
        sketches = [_sketch(text) if len(text) <= MAX_LENGTH else _sketch("") for text in questions]
        owners = np.repeat(np.arange(len(questions), dtype=np.int32), [len(sketch) for sketch in sketches])
        hashes = np.concatenate([_sketch(""), *sketches])
        order = np.argsort(hashes, kind="stable")
        self._owners = owners[order]
        self._hashes, starts = np.unique(hashes[order], return_index=True)
        self._starts = np.append(starts, len(hashes))

    def find(self, prompt: str) -> list[int]:
        """Return the positions of the questions most similar to a prompt.

        Args:
            prompt: the prompt, with case and white space normalized as in the questions.

        Returns:
            Several positions if several questions are equally similar. An empty list if the prompt is too long, or if
            no question with the same numbers and operator signs reaches the threshold.
        """
        if len(prompt) > MAX_LENGTH:
            return []
        exact = _exact(prompt)
        candidates = {row: self._questions[row] for row in self._candidates(prompt)}
        matching = {row: question for row, question in candidates.items() if _exact(question) == exact}
        found = process.extract(prompt, matching, scorer=fuzz.ratio, score_cutoff=100 * self._threshold, limit=None)
        return [row for _, similarity, row in found if similarity == found[0][1]]

    def _candidates(self, prompt: str) -> list[int]:
        """Return the positions of at most `CANDIDATES` questions: those that share the most hashes with the prompt.

        Questions whose length alone puts their similarity below the threshold are left out.
        """
        shared = np.bincount(self._visit(_sketch(prompt)))
        rows = np.flatnonzero(shared)
        lengths = self._lengths[rows]
        near = 2 * np.minimum(lengths, len(prompt)) >= self._threshold * (lengths + len(prompt))
        rows = rows[near]
        if len(rows) > CANDIDATES:
            rows = rows[np.argpartition(shared[rows], -CANDIDATES)[-CANDIDATES:]]
        return [int(row) for row in rows]

    def _visit(self, sketch: Hashes) -> NDArray[np.int32]:
        """Return the positions of the questions that share hashes with a sketch, once for each shared hash.

        Entries of rare hashes are read first. After about `MAX_VISITS` entries, the remaining hashes are left out.
        """
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
    """Return the smallest hashes of a text's trigrams, ascending. A text of one or two characters is one trigram."""
    padded = text.ljust(3, "\0") if text else text
    codes = np.frombuffer(padded.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    grams = codes[:-2] * MULTIPLIERS[0] + codes[1:-1] * MULTIPLIERS[1] + codes[2:] * MULTIPLIERS[2]
    mixed = (grams ^ (grams >> np.uint64(29))) * MULTIPLIERS[0]
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))[:SKETCH]
