"""Answers by question: the prompt as it is, then with other white space, then the question most like it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from hashlib import blake2b

from rewardstack.core.lru import LruCache
from rewardstack_rules.golden.nearest import NearestQuestion

Answer = tuple[str, ...]
"""The references of one row."""

REMEMBERED = 50_000
"""Prompts whose nearest question is remembered."""


class GoldenResponses:
    """Answers by question, looked up without a scan; for any number of threads.

    Args:
        rows: (question, answer).
        threshold: how like a prompt the nearest question must be, from 0 to 1.
    """

    def __init__(self, rows: Iterable[tuple[str, Answer]], threshold: float) -> None:
        self._exact: dict[str, Answer | None] = {}
        self._normalised: dict[str, Answer | None] = {}
        for question, answer in rows:
            _add(self._exact, question, answer)
            _add(self._normalised, _normalise(question), answer)
        by_folded: dict[str, Answer | None] = {}
        for question, known in self._normalised.items():
            _add(by_folded, question.casefold(), known)
        self._answers = list(by_folded.values())
        self._nearest = NearestQuestion(list(by_folded), threshold)
        self._remembered: LruCache[bytes, tuple[Answer | None, ...]] = LruCache(REMEMBERED)
        self._lock = threading.Lock()

    def find(self, prompt: str) -> list[str] | None:
        """The references for a prompt.

        Args:
            prompt: is looked for as it is, then with its white space normalised, then by likeness.

        Returns:
            The answer's references; None where no question is like the prompt, or several with different answers are.
        """
        answer = self._exact.get(prompt)
        if answer is None:
            normalised = _normalise(prompt)
            answer = self._normalised[normalised] if normalised in self._normalised else self._like(normalised)
        return None if answer is None else list(answer)

    def _like(self, prompt: str) -> Answer | None:
        if not self._answers:
            return None
        key = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            found = self._remembered.get(key)
        if found is None:
            found = tuple({self._answers[row] for row in self._nearest.find(prompt.casefold())})
            with self._lock:
                self._remembered.put(key, found)
        return found[0] if len(found) == 1 else None


def _add(answers: dict[str, Answer | None], question: str, answer: Answer | None) -> None:
    """Gives a question its answer, or None where rows contradict each other."""
    answers[question] = answer if answers.get(question, answer) == answer else None


def _normalise(text: str) -> str:
    normalised = " ".join(text.split())
    return text if text == normalised else normalised  # one copy of it in memory
