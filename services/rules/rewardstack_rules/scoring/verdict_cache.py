"""Verdicts on questions of mathematics: they are facts, so they are remembered.

Each tenant's are its own, for otherwise who asks could tell by the time that it takes what others have asked.
"""

from __future__ import annotations

from copy import copy

from rewardstack.core.lru import LruCache
from rewardstack_verifier.question import Question, Ruling

REMEMBERED = 8192
"""Questions whose verdicts a process remembers."""
MAX_QUESTION = 2000
"""Characters of a question that is remembered."""


class Verdicts:
    """The verdicts that one process knows; not for several threads at once.

    Args:
        size: how many are remembered, of all tenants; those least recently asked for are forgotten first.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._tenant = ""
        self._known: LruCache[tuple[str, Question], Ruling] = LruCache(size)

    def of(self, tenant: str) -> Verdicts:
        """The same memory as another tenant has it: what others asked is not in it."""
        mine = copy(self)
        mine._tenant = tenant
        return mine

    def recall(self, question: Question) -> Ruling | None:
        """The verdict on a question, None where it is not remembered."""
        return self._known.get((self._tenant, question))

    def keep(self, question: Question, verdict: Ruling) -> None:
        """Remembers a verdict, unless the question is long."""
        if sum(map(len, question.expected)) + len(question.answer) <= MAX_QUESTION:
            self._known.put((self._tenant, question), verdict)
