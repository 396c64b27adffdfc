"""One rule as the pipeline sees it: inline where that is safe, else in processes that can be killed.

A verifier decides at once what is beyond doubt, and has the rest decided in those processes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.cache.key import read_fields, rule_key
from rewardstack.core.coalescing import wait_for_all
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import unwritable
from rewardstack.core.keys import Key
from rewardstack.core.near_misses import near_miss
from rewardstack.core.steps import Trace
from rewardstack.core.wire import Record
from rewardstack.errors import ConfigError, DeadlineError, RequestError, RewardstackError
from rewardstack.pipeline.scorer import Scorer
from rewardstack.score import Item, OnError, Score
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.scoring.counting import UNCOUNTED, Counters
from rewardstack_rules.scoring.inquiries import Decision, Inquiries, Result
from rewardstack_rules.scoring.task import evaluate, make_task
from rewardstack_rules.scoring.verdict_cache import Verdicts
from rewardstack_verifier.explanation import read_out
from rewardstack_verifier.question import Question, Ruling, ask
from rewardstack_verifier.shortcut import decide_fast_path

MAX_INLINE = 32_000
"""Characters of a sample that is read on the event loop; longer ones are read in threads, or in isolated processes."""
INLINE_BATCH = 64
PATIENCE = 30.0
"""Seconds, beside those an item may run, in which no item at all was finished before one gives up waiting its turn."""
MAX_ISOLATED = 2_000_000
"""Characters beyond which an isolated rule gives 0 unread."""
ERRORS = {"timeout": "the sample took longer than {timeout:g} s", "killed": "its process died"}

log = logging.getLogger(__name__)


class Isolation:
    """The isolated processes, and when they last finished something.

    Args:
        client: hands them tasks.
        timeout: seconds that one task may run.
    """

    def __init__(self, client: IsolationClient, timeout: float) -> None:
        self._client = client
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
        """What became of a task, however long it waits for its turn; raises as `IsolationClient.run`.

        Args:
            task: what the process is told.
            brief: end it as soon as it turns out to be slow.
        """
        [result] = await self._client.run([task], self.timeout, brief=brief)
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
    """What the scorers of a rule share, which run it here or in isolated processes beside this server.

    Args:
        rule: the reward function.
        isolation: where it runs.
    """

    on_error: OnError = "zero"
    ran = "in an isolated process"
    """Where it runs, for an explanation."""

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

    def describe(self, item: Item, prepared: LocalSample) -> Record:
        """The function, what it is given, and what it reads where it says so."""
        rule = self._rule
        facts: Record = {"function": rule.name, "range": "{:g} to {:g}".format(*rule.range)}
        if given := read_fields(item, rule.fields):
            facts["given"] = given
        if not _is_short(item):
            return facts
        try:
            return {**facts, **self._read_out(item)}
        except RequestError as error:
            return {**facts, "unreadable": str(error)}
        except Exception:
            log.exception("%s: a fault while it told what it reads", self.source)
            return facts

    def _read_out(self, item: Item) -> Record:
        return {} if self._rule.read_out is None else self._rule.read_out(item.solution, item.references, item.extra)

    async def explain(self, prepared: LocalSample, deadline: SharedDeadline, trace: Trace) -> Score:
        """The score, with where the function ran noted; raises as `score` does."""
        [score] = await self.score([prepared], deadline)
        trace.note("function", {"ran": self.ran})
        return score

    async def _isolated(self, item: Item, deadline: SharedDeadline) -> Score:
        if len(item.solution) > MAX_ISOLATED:
            return Score(0.0, reason=f"the response is longer than {MAX_ISOLATED} characters", source=self.source)
        task = make_task(self._rule, item.solution, item.references, read_fields(item, self._rule.fields))
        result = await self._isolation.run(task, deadline)
        if result.get("error") == "unwritable":
            error = unwritable(task["extra"])
            return Score.unscored(str(error), self.source, error.field)
        return self._read(result)

    def _inline(self, item: Item) -> Score:
        try:
            return self._score(evaluate(self._rule, item.solution, item.references, item.extra))
        except Exception as error:
            log.exception("%s raised", self.source)
            return Score.failed(f"{self._rule.name} raised {type(error).__name__}", self.source)

    def _read(self, result: Mapping[str, Any]) -> Score:
        error = result.get("error")
        if error in ("raised", "returned"):
            return Score.failed(f"{self._rule.name} {error} {result.get('message', '')}", self.source)
        if error == "oversize":
            return Score.unscored("the sample's references and extra_info are too long", self.source)
        if error is not None:
            what = ERRORS[error].format(timeout=self._isolation.timeout)
            return Score.failed(f"{self._rule.name}: {what}", self.source)
        return self._score(Outcome(result["value"], result["reason"], result["parts"], result["field"]))

    def _score(self, outcome: Outcome) -> Score:
        if outcome.value is None:
            return Score.unscored(outcome.reason, self.source, outcome.field)
        low, high = self._rule.range
        if not low <= outcome.value <= high:
            return Score.failed(
                f"{self._rule.name} gave {outcome.value:g}, outside its {low:g} to {high:g}", self.source
            )
        parts = None if outcome.parts is None else dict(outcome.parts)
        return Score(outcome.value, reason=outcome.reason, source=self.source, parts=parts)


class IsolatedRule(LocalRule):
    """Scores by one rule in processes that can be killed."""

    async def score(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order.

        Raises:
            DeadlineError: nobody waited for them until their end.
            ServiceError: there are no isolated processes.
        """
        return [self._with_hint(sample.item, await self._isolated(sample.item, deadline)) for sample in prepared]

    def _with_hint(self, item: Item, score: Score) -> Score:
        """Add to a score's reason which field of `extra_info` most likely has a slip in its name."""
        if self._rule.named and (hint := near_miss(self._rule.name, self._rule.named, tuple(item.extra))):
            score.reason = f"{score.reason}; {hint}" if score.reason else hint
        return score


class InlineRule(LocalRule):
    """Scores by one rule that is bounded by its own making, where it is called."""

    ran = "in the process that scores"

    def at_once(self, sample: LocalSample) -> Score | None:
        """The score of a sample, None of one so long that others would wait for it."""
        return self._inline(sample.item) if _is_short(sample.item) else None

    async def score(self, prepared: Sequence[LocalSample], deadline: SharedDeadline) -> list[Score]:
        """One score for each sample, in order, found in a thread."""
        return await asyncio.to_thread(lambda: [self._inline(sample.item) for sample in prepared])


class LocalVerifier(LocalRule):
    """Scores by one verifier, in this server.

    Args:
        rule: the reward function.
        verifier: its two halves.
        isolation: where questions go that are not decided here.
        verdicts: those that this process knows for whoever asks; verifiers share them.
        counters: of what is compared.
    """

    def __init__(
        self,
        rule: Rule,
        verifier: Verifier,
        isolation: Isolation,
        verdicts: Verdicts,
        counters: Counters = UNCOUNTED,
    ) -> None:
        super().__init__(rule, isolation)
        self._verifier = verifier
        self._counters = counters
        self._inquiries = Inquiries(self._have_decided, verdicts)

    def at_once(self, sample: LocalSample) -> Score | None:
        """The score of a sample about which there is no doubt; of the others, the question that decides it is noted."""
        item = sample.item
        if len(item.solution) > MAX_INLINE or not item.references:
            return None
        try:
            asked = ask(self._verifier.read(item.solution), item.references, self._verifier.options(item.extra))
            if isinstance(asked, Ruling):
                return self._value(item, asked)
            verdict = decide_fast_path(asked)
            if verdict is not None:
                return self._value(item, verdict)
            sample.question = asked
        except RequestError as error:
            return Score.unscored(str(error), self.source, error.field or "")
        except Exception:
            log.exception("%s: a fault; the sample is evaluated in an isolated process", self.source)
        return None

    def _read_out(self, item: Item) -> Record:
        return read_out(self._verifier.read(item.solution), item.references, self._verifier.options(item.extra))

    async def explain(self, prepared: LocalSample, deadline: SharedDeadline, trace: Trace) -> Score:
        """The score, with the comparisons that decided its question noted; raises as `score` does."""
        if prepared.question is None:
            return await super().explain(prepared, deadline, trace)
        task = self._task([prepared.question])
        result = await self._isolation.run({**task, "with_trace": True}, deadline)
        trace.note("compared", {"ran": self.ran, "comparisons": result.get("comparisons")})
        if "error" in result:
            return self._read(result)
        return self._value(prepared.item, Ruling(**result["verdicts"][0]))

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
        result = await self._isolation.finish(self._task(questions), brief=brief)
        self._counters.count_compared(verdict["by"] or "values" for verdict in result.get("verdicts", ()))
        return result

    def _task(self, questions: Sequence[Question]) -> Record:
        return {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "questions": questions}

    async def _evaluate(self, item: Item, deadline: SharedDeadline) -> Score | RewardstackError:
        try:
            return await self._isolated(item, deadline)
        except RewardstackError as error:
            return error

    def _read_outcome(self, item: Item, outcome: Decision | Score) -> Score:
        if isinstance(outcome, Score):
            return outcome
        if isinstance(outcome, Ruling):
            return self._value(item, outcome)
        if isinstance(outcome, ConfigError):
            raise outcome
        if isinstance(outcome, RewardstackError):
            return Score.failed(str(outcome), self.source)
        return self._read(outcome)

    def _value(self, item: Item, verdict: Ruling) -> Score:
        return self._score(self._verifier.value(item.solution, verdict))


def _is_short(item: Item) -> bool:
    """Whether a sample is read in no time, however many references it has."""
    references = item.references or ("",)
    return len(item.solution) * len(references) + sum(map(len, references)) <= MAX_INLINE
