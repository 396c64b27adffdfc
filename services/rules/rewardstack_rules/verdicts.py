"""Verdicts on questions of mathematics: they are facts, so they are remembered."""

from __future__ import annotations

from collections import OrderedDict

from rewardstack_rules.mathematics import Question, Verdict

REMEMBERED = 8192
"""Questions whose verdicts a process remembers."""
MAX_QUESTION = 2000
"""Characters of a question that is remembered."""


class Verdicts:
    """The verdicts that one process knows; not for several threads at once.

    Args:
        size: how many are remembered; those least recently asked for are forgotten first.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[Question, Verdict] = OrderedDict()

    def recall(self, question: Question) -> Verdict | None:
        """The verdict on a question, None where it is not remembered."""
        verdict = self._known.get(question)
        if verdict is not None:
            self._known.move_to_end(question)
        return verdict

    def keep(self, question: Question, verdict: Verdict) -> None:
        """Remembers a verdict, unless the question is long."""
        if sum(map(len, question.expected)) + len(question.answer) <= MAX_QUESTION:
            self._known[question] = verdict
            if len(self._known) > self._size:
                self._known.popitem(last=False)
