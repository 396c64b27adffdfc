"""Find the answer to a prompt in three steps.

The first step looks for a question that equals the prompt, the second for a question that differs only in white space,
and the third for the most similar questions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from hashlib import blake2b

from rewardstack.core.lru import LruCache
from rewardstack_rules.golden.nearest import NearestQuestion

Answer = tuple[str, ...]
"""The references of one row."""

MAX_CACHED_PROMPTS = 50_000
"""Maximum number of prompts for which the answers of the most similar questions are cached."""


class GoldenResponses:
    """An index of answers by question; thread-safe.

    Args:
        rows: pairs of a question and its answer.
        threshold: minimum similarity between a prompt and its nearest question, from 0 to 1.
    """

    def __init__(self, rows: Iterable[tuple[str, Answer]], threshold: float) -> None:
        self._exact: dict[str, Answer | None] = {}
        self._normalized: dict[str, Answer | None] = {}
        for question, answer in rows:
            _add(self._exact, question, answer)
            _add(self._normalized, _normalize(question), answer)
        by_folded: dict[str, Answer | None] = {}
        for question, known in self._normalized.items():
            _add(by_folded, question.casefold(), known)
        self._answers = list(by_folded.values())
        self._nearest = NearestQuestion(list(by_folded), threshold)
        self._cached: LruCache[bytes, tuple[Answer | None, ...]] = LruCache(MAX_CACHED_PROMPTS)
        self._lock = threading.Lock()

    def find(self, prompt: str) -> list[str] | None:
        """Return the references for a prompt.

        Args:
            prompt: text of the prompt.

        Returns:
            The references; None if no question is similar enough, or if the most similar ones have different answers.
        """
        answer = self._exact.get(prompt)
        if answer is None:
            normalized = _normalize(prompt)
            answer = self._normalized[normalized] if normalized in self._normalized else self._similar(normalized)
        return None if answer is None else list(answer)

    def _similar(self, prompt: str) -> Answer | None:
        if not self._answers:
            return None
        key = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            found = self._cached.get(key)
        if found is None:
            found = tuple({self._answers[row] for row in self._nearest.find(prompt.casefold())})
            with self._lock:
                self._cached.put(key, found)
        return found[0] if len(found) == 1 else None


def _add(answers: dict[str, Answer | None], question: str, answer: Answer | None) -> None:
    """Set the answer to a question; set None if the question already has another answer."""
    answers[question] = answer if answers.get(question, answer) == answer else None


def _normalize(text: str) -> str:
    normalized = " ".join(text.split())
    return text if text == normalized else normalized  # do not keep an equal copy in memory
