"""A verifier as the flow sees it: decides at once what is beyond doubt or known, and the rest in isolated processes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from rewardstack.deadline import Deadline, SharedDeadline
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.flights import landing
from rewardstack.score import Item, Score
from rewardstack_rules.inquiries import Inquiries, Outcome, Result
from rewardstack_rules.mathematics import Question, Verdict, ask, decide_plainly
from rewardstack_rules.registry import Rule
from rewardstack_rules.scorer import Isolation, LocalRule
from rewardstack_rules.verdicts import Verdicts
from rewardstack_rules.verifier import Verifier

MAX_INLINE = 32_000
"""Characters of a response that is read in this process; longer ones are read in isolated ones."""
BREATH = 0.01
"""Seconds of reading after which the event loop's other callers have their turn."""

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
        self._inquiries = Inquiries(self._decide, verdicts)

    async def answer(self, items: Sequence[Item], deadline: Deadline) -> list[Score]:
        """One score for each item, in order; what is not scored within the deadline is `failed`.

        Raises:
            ConfigError: the isolated processes cannot run the rule.
        """
        late = Score.failed(f"no answer within {deadline.timeout:g} s", self.source)
        scores = [late] * len(items)
        waits: dict[int, asyncio.Future[Any]] = {}
        rested = time.monotonic()
        deadline.enter_queue(self._isolation)
        try:
            for at, item in enumerate(items):
                found = self.settle(item)
                if isinstance(found, Score):
                    scores[at] = found
                elif found is not None:
                    waits[at] = self._inquiries.ask(found)
                else:
                    waits[at] = asyncio.create_task(self._judge(item, deadline))
                if time.monotonic() - rested > BREATH:
                    await asyncio.sleep(0)
                    rested = time.monotonic()
            await landing(waits.values(), deadline)
            for at, wait in waits.items():
                scores[at] = self._landed(items[at], wait.result()) if wait.done() else late
        finally:
            deadline.leave_queue(self._isolation)
            for wait in waits.values():
                wait.cancel()
        return scores

    def settle(self, item: Item) -> Score | Question | None:
        """The score of an item where it needs no isolated process, else the question that one has to decide.

        None where the item itself has to be judged there.
        """
        if len(item.solution) > MAX_INLINE or not item.references:
            return None
        try:
            asked = ask(self._verifier.read(item.solution), item.references)
            if isinstance(asked, Verdict):
                return self._value(item, asked)
            verdict = self._verdicts.recall(asked) or decide_plainly(asked)
            return asked if verdict is None else self._value(item, verdict)
        except Exception:
            log.exception("%s: a fault; the sample is judged in an isolated process", self.source)
            return None

    async def _decide(self, questions: Sequence[Question], brief: bool) -> Result:
        task = {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "questions": questions}
        return await self._isolation.finish(task, brief=brief)

    async def _judge(self, item: Item, deadline: Deadline) -> Score | RewardstackError:
        try:
            return await self._isolated(item, SharedDeadline(deadline))
        except RewardstackError as error:
            return error

    def _landed(self, item: Item, outcome: Outcome | Score) -> Score:
        if isinstance(outcome, Score):
            return outcome
        if isinstance(outcome, Verdict):
            return self._value(item, outcome)
        if isinstance(outcome, ConfigError):
            raise outcome
        if isinstance(outcome, RewardstackError):
            return Score.failed(str(outcome), self.source)
        return self._read(outcome)

    def _value(self, item: Item, verdict: Verdict) -> Score:
        return self._score(self._verifier.value(item.solution, verdict))
