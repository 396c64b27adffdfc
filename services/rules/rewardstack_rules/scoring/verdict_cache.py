"""Verdicts on questions of mathematics: they are facts, so they are remembered.

Each tenant's are its own, for otherwise who asks could tell by the time that it takes what others have asked.
"""

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
        size: how many are remembered, of all tenants; those least recently asked for are forgotten first.
        tenant: whose verdicts these are.
    """

    def __init__(self, size: int = REMEMBERED, tenant: str = "") -> None:
        self._size = size
        self._tenant = tenant
        self._known: OrderedDict[tuple[str, Question], Verdict] = OrderedDict()

    def of(self, tenant: str) -> Verdicts:
        """The same memory as another tenant has it: what others asked is not in it."""
        mine = Verdicts(self._size, tenant)
        mine._known = self._known
        return mine

    def recall(self, question: Question) -> Verdict | None:
        """The verdict on a question, None where it is not remembered."""
        verdict = self._known.get((self._tenant, question))
        if verdict is not None:
            self._known.move_to_end((self._tenant, question))
        return verdict

    def keep(self, question: Question, verdict: Verdict) -> None:
        """Remembers a verdict, unless the question is long."""
        if sum(map(len, question.expected)) + len(question.answer) <= MAX_QUESTION:
            self._known[self._tenant, question] = verdict
            if len(self._known) > self._size:
                self._known.popitem(last=False)
