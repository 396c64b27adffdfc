"""A verifier as the flow sees it: decides at once what is beyond doubt or known, and the rest in isolated processes."""

from __future__ import annotations

import logging
from functools import lru_cache

from rewardstack.deadline import SharedDeadline
from rewardstack.score import Item, Score
from rewardstack_rules.mathematics import Question, Verdict, ask, decide_plainly
from rewardstack_rules.registry import Rule
from rewardstack_rules.scorer import Isolation, LocalRule
from rewardstack_rules.verdicts import Verdicts
from rewardstack_rules.verifier import Verifier

MAX_INLINE = 32_000
"""Characters of a response that is read in this process; longer ones are read in isolated ones."""

RECENT = 256
"""Items whose question is remembered, from when it is not decided at once to when it is sent."""

log = logging.getLogger(__name__)


class LocalVerifier(LocalRule):
    """Scores by one verifier, in this server.

    Args:
        rule: the reward function.
        verifier: its two halves.
        isolation: where questions go that are not decided here.
        verdicts: those known to this process; verifiers share them.
    """

    def __init__(self, rule: Rule, verifier: Verifier, isolation: Isolation, verdicts: Verdicts) -> None:
        super().__init__(rule, isolation)
        self._verifier = verifier
        self._verdicts = verdicts
        self._ask = lru_cache(maxsize=RECENT)(self._read_and_ask)

    def at_once(self, item: Item) -> Score | None:
        """The score of an item whose verdict needs no isolated process, else None."""
        if len(item.solution) > MAX_INLINE or not item.references:
            return None
        try:
            asked = self._ask(item.solution, item.references)
            if isinstance(asked, Verdict):
                return self._value(item, asked)
            verdict = self._verdicts.recall(asked) or decide_plainly(asked)
            return None if verdict is None else self._value(item, verdict)
        except Exception:
            log.exception("%s: a fault; the sample is judged in an isolated process", self.source)
            return None

    async def _isolated(self, item: Item, deadline: SharedDeadline) -> Score:
        if len(item.solution) > MAX_INLINE or not item.references:
            return await super()._isolated(item, deadline)
        asked = self._ask(item.solution, item.references)
        if isinstance(asked, Verdict):
            return self._value(item, asked)
        task = {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "question": asked}
        result = await self._verdicts.decide(asked, lambda shared: self._isolation.run(task, shared), deadline)
        return self._value(item, Verdict(**result)) if "error" not in result else self._read(result)

    def _read_and_ask(self, solution: str, references: tuple[str, ...]) -> Question | Verdict:
        return ask(self._verifier.read(solution), references)

    def _value(self, item: Item, verdict: Verdict) -> Score:
        return self._score(self._verifier.value(item.solution, verdict))
