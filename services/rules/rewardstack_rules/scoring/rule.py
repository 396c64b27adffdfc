"""One rule as the pipeline sees it: runs inline where that is safe, else in processes that can be killed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.cache.key import read_fields, rule_key
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.errors import DeadlineError
from rewardstack.pipeline.scorer import Scorer
from rewardstack.score import Item, OnError, Score
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.isolation.client import IsolatedRunner
from rewardstack_rules.mathematics import Question
from rewardstack_rules.scoring.task import evaluate

MAX_INLINE = 32_000
"""Characters of a sample that is read on the event loop; longer ones are read in threads, or in isolated processes."""
INLINE_BATCH = 64
PATIENCE = 30.0
"""Seconds, beside those an item may run, in which no item at all was finished before one gives up waiting its turn."""
MAX_RESPONSE = 2_000_000
"""Characters beyond which an isolated rule gives 0 unread."""
ERRORS = {"timeout": "the sample took longer than {timeout:g} s", "killed": "its process died"}

log = logging.getLogger(__name__)


def make_task(rule: Rule, solution: str, references: Sequence[str], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What an isolated process is told (`task.execute`)."""
    return {
        "rule": rule.name,
        "fingerprint": rule.fingerprint,
        "solution": solution,
        "references": references,
        "extra": extra,
    }


class Isolation:
    """The isolated processes, and when they last finished something.

    Args:
        runner: hands them tasks.
        timeout: seconds that one task may run.
    """

    def __init__(self, runner: IsolatedRunner, timeout: float) -> None:
        self._runner = runner
        self.timeout = timeout
        self.last_progress = time.monotonic()

    async def run(self, task: Mapping[str, Any], deadline: SharedDeadline) -> dict[str, Any]:
        """What became of a task; it is dropped when nobody waits for it any more.

        Raises:
            DeadlineError: nobody waited until its end.
            ServiceError: there are no isolated processes.
        """
        work = asyncio.ensure_future(self.finish(task))
        try:
            with deadline.queued(self):
                while not work.done():
                    left = deadline.remaining()
                    if left <= 0:
                        raise DeadlineError("dropped: nobody waits for it any more")
                    await asyncio.wait({work}, timeout=left)
        finally:
            work.cancel()
        return work.result()

    async def finish(self, task: Mapping[str, Any], *, brief: bool = False) -> dict[str, Any]:
        """What became of a task, however long it waits for its turn; raises as `IsolatedRunner.run`.

        Args:
            task: what the process is told.
            brief: end it as soon as it turns out to be slow.
        """
        [result] = await self._runner.run([task], self.timeout, brief=brief)
        self.last_progress = time.monotonic()
        return result


@dataclass(slots=True)
class LocalSample:
    """A sample that is scored here.

    Args:
        item: the sample.
        question: that decides it; None before it is known, and where the sample itself has to be judged.
    """

    item: Item
    question: Question | None = None


class LocalRule(Scorer[LocalSample]):
    """Scores by one rule, in isolated processes beside this server.

    Args:
        rule: the reward function.
        isolation: where it runs.
    """

    on_error: OnError = "zero"

    def __init__(self, rule: Rule, isolation: Isolation) -> None:
        self.source = f"rule:{rule.name}"
        self.timeout = isolation.timeout + PATIENCE
        self._rule = rule
        self._isolation = isolation

    def prepare(self, item: Item) -> LocalSample:
        """The item as it is: the rule itself reads it."""
        return LocalSample(item)

    async def keys(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Key | None]:
        """The samples' cache keys; the same that a client makes of what `/v1/reward_types` tells it."""
        rule = self._rule
        return rule_key(rule.name, rule.fingerprint, rule.fields, [sample.item for sample in prepared], rule.range)

    async def score(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order.

        Raises:
            DeadlineError: nobody waited for them until their end.
            ServiceError: there are no isolated processes.
        """
        return [await self._isolated(sample.item, deadline) for sample in prepared]

    async def _isolated(self, item: Item, deadline: SharedDeadline) -> Score:
        if len(item.solution) > MAX_RESPONSE:
            return Score(0.0, reason=f"the response is longer than {MAX_RESPONSE} characters", source=self.source)
        task = make_task(self._rule, item.solution, item.references, read_fields(item.extra, self._rule.fields))
        return self._read(await self._isolation.run(task, deadline))

    def _inline(self, item: Item) -> Score:
        try:
            return self._score(evaluate(self._rule, item.solution, item.references, item.extra))
        except Exception as error:
            log.exception("%s raised", self.source)
            return Score.failed(f"{self._rule.name} raised {type(error).__name__}", self.source)

    def _read(self, result: Mapping[str, Any]) -> Score:
        error = result.get("error")
        if error == "raised":
            first_line = str(result.get("message", "")).partition("\n")[0]
            return Score.failed(f"{self._rule.name} raised {first_line}", self.source)
        if error == "oversize":
            return Score.unscored("the sample's references and extra_info are too long", self.source)
        if error is not None:
            what = ERRORS[error].format(timeout=self._isolation.timeout)
            return Score.failed(f"{self._rule.name}: {what}", self.source)
        return self._score(Outcome(result["value"], result["reason"], result["parts"]))

    def _score(self, outcome: Outcome) -> Score:
        if outcome.value is None:
            return Score.unscored(outcome.reason, self.source)
        low, high = self._rule.range
        if not low <= outcome.value <= high:
            return Score.failed(
                f"{self._rule.name} gave {outcome.value:g}, outside its {low:g} to {high:g}", self.source
            )
        parts = None if outcome.parts is None else dict(outcome.parts)
        return Score(outcome.value, reason=outcome.reason, source=self.source, parts=parts)


class InlineRule(LocalRule):
    """Scores by one rule that is bounded by its own making, where it is called."""

    def at_once(self, sample: LocalSample) -> Score | None:
        """The score of a sample, None of one so long that others would wait for it."""
        references = sample.item.references or ("",)
        if len(sample.item.solution) * len(references) + sum(map(len, references)) > MAX_INLINE:
            return None
        return self._inline(sample.item)

    async def score(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order, found in a thread."""
        return await asyncio.to_thread(lambda: [self._inline(sample.item) for sample in prepared])
