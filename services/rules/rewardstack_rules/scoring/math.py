"""A verifier as the flow sees it: decides at once what is beyond doubt or known, and the rest in isolated processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardstack.core.coalescing import landing
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.score import Item, Score
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_rules.mathematics import Question, Verdict, ask, decide_plainly
from rewardstack_rules.scoring.coalescing import Inquiries, Outcome, Result
from rewardstack_rules.scoring.rule import MAX_INLINE, Isolation, LocalRule
from rewardstack_rules.scoring.verdict_cache import Verdicts

log = logging.getLogger(__name__)


class Open(NamedTuple):
    """A sample that is not decided at once.

    Args:
        item: the sample.
        question: that decides it; None where the sample itself has to be evaluated in an isolated process.
    """

    item: Item
    question: Question | None = None


class LocalVerifier(LocalRule):
    """Scores by one verifier, in this server.

    Args:
        rule: the reward function.
        verifier: its two halves.
        isolation: where questions go that are not decided here.
        verdicts: those that this process knows for whoever asks; verifiers share them.
    """

    def __init__(self, rule: Rule, verifier: Verifier, isolation: Isolation, verdicts: Verdicts) -> None:
        super().__init__(rule, isolation)
        self._verifier = verifier
        self._verdicts = verdicts
        self._inquiries = Inquiries(self._decide, verdicts)

    def at_once(self, item: Item) -> Score | Open:
        """The score of an item about which there is no doubt, else what `answer` goes on with."""
        if len(item.solution) > MAX_INLINE or not item.references:
            return Open(item)
        try:
            asked = ask(self._verifier.read(item.solution), item.references)
            if isinstance(asked, Verdict):
                return self._value(item, asked)
            verdict = decide_plainly(asked)
            return Open(item, asked) if verdict is None else self._value(item, verdict)
        except Exception:
            log.exception("%s: a fault; the sample is evaluated in an isolated process", self.source)
            return Open(item)

    async def answer(self, begun: Sequence[Open], deadline: Deadline) -> list[Score]:
        """One score for each sample, in order; what is not scored within the deadline is `failed`.

        Raises:
            ConfigError: the isolated processes cannot run the rule.
        """
        late = Score.failed(f"no answer within {deadline.timeout:g} s", self.source)
        deadline.enter_queue(self._isolation)
        waits = [self._ask(one, deadline) for one in begun]
        try:
            await landing(waits, deadline)
            landed = zip(begun, waits, strict=True)
            return [self._landed(one.item, wait.result()) if wait.done() else late for one, wait in landed]
        finally:
            deadline.leave_queue(self._isolation)
            for wait in waits:
                wait.cancel()

    def _ask(self, one: Open, deadline: Deadline) -> asyncio.Future[Any]:
        """What will become of a sample: a verdict that is known, or what the isolated processes say."""
        if one.question is None:
            return asyncio.ensure_future(self._evaluate(one.item, deadline))
        return self._inquiries.ask(one.question)

    async def _decide(self, questions: Sequence[Question], brief: bool) -> Result:
        task = {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "questions": questions}
        return await self._isolation.finish(task, brief=brief)

    async def _evaluate(self, item: Item, deadline: Deadline) -> Score | RewardstackError:
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
