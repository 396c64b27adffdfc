"""A verifier as the pipeline sees it: decides at once what is beyond doubt, and the rest in isolated processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from rewardstack.core.coalescing import wait_for_all
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.score import Item, Score
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_rules.mathematics import Question, Verdict, ask, decide_plainly
from rewardstack_rules.scoring.inquiries import Decision, Inquiries, Result
from rewardstack_rules.scoring.rule import MAX_INLINE, Isolation, LocalRule, LocalSample
from rewardstack_rules.scoring.verdict_cache import Verdicts

log = logging.getLogger(__name__)


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
        self._inquiries = Inquiries(self._have_decided, verdicts)

    def at_once(self, sample: LocalSample) -> Score | None:
        """The score of a sample about which there is no doubt; of the others, the question that decides it is noted."""
        item = sample.item
        if len(item.solution) > MAX_INLINE or not item.references:
            return None
        try:
            asked = ask(self._verifier.read(item.solution), item.references)
            if isinstance(asked, Verdict):
                return self._value(item, asked)
            verdict = decide_plainly(asked)
            if verdict is not None:
                return self._value(item, verdict)
            sample.question = asked
        except Exception:
            log.exception("%s: a fault; the sample is evaluated in an isolated process", self.source)
        return None

    async def score(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order; what is not scored within the deadline is `failed`.

        Raises:
            ConfigError: the isolated processes cannot run the rule.
        """
        late = Score.failed(f"no answer within {deadline.timeout:g} s", self.source)
        waits: list[asyncio.Future[Any]] = []
        try:
            with deadline.queued(self._isolation):
                waits += [self._ask(sample, deadline) for sample in prepared]
                await wait_for_all(waits, deadline)
            found = zip(prepared, waits, strict=True)
            return [self._read_outcome(one.item, wait.result()) if wait.done() else late for one, wait in found]
        finally:
            for wait in waits:
                wait.cancel()

    def _ask(self, sample: LocalSample, deadline: SharedDeadline) -> asyncio.Future[Any]:
        """What will become of a sample: a verdict that is known, or what the isolated processes say."""
        if sample.question is None:
            return asyncio.ensure_future(self._evaluate(sample.item, deadline))
        return self._inquiries.ask(sample.question)

    async def _have_decided(self, questions: Sequence[Question], brief: bool) -> Result:
        task = {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "questions": questions}
        return await self._isolation.finish(task, brief=brief)

    async def _evaluate(self, item: Item, deadline: SharedDeadline) -> Score | RewardstackError:
        try:
            return await self._isolated(item, deadline)
        except RewardstackError as error:
            return error

    def _read_outcome(self, item: Item, outcome: Decision | Score) -> Score:
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
