"""Scorers of the pipeline that run rules: inline if their run time is bounded, else in processes that can be killed.

The math verifier decides clear cases inline. For other samples, it sends a question to isolated processes, which return
the verdict. A question consists of the answer in the response and the answers in the references.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewardstack.cache.key import Key, read_fields, rule_key
from rewardstack.cause import Cause
from rewardstack.core.batching import Batcher, BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import serialization_error
from rewardstack.core.lru import LruCache
from rewardstack.core.misspellings import misspelling_hint
from rewardstack.core.wire import Record
from rewardstack.errors import ConfigError, DeadlineError, RequestError, RewardstackError, ServiceError
from rewardstack.pipeline.scorer import Context, Scorer
from rewardstack.score import Item, Score
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.scoring.counters import NO_COUNTERS, Counters
from rewardstack_rules.scoring.output import output_log
from rewardstack_rules.scoring.task import evaluate, make_task
from rewardstack_verifier.explanation import read_out
from rewardstack_verifier.question import Question, Ruling, ask
from rewardstack_verifier.shortcut import decide_fast_path

MAX_INLINE = 32_000
"""Maximum characters of a sample that is scored on the event loop. Longer ones go to threads or isolated processes."""
MAX_INLINE_REFERENCES = 100
"""Maximum references of a sample that the math verifier compares on the event loop."""
STALL_SECONDS = 30.0
"""A waiting sample fails if no sample finishes for this many seconds plus the timeout of a sample."""
MAX_ISOLATED_RESPONSE = 2_000_000
"""Maximum number of characters of a response that an isolated rule accepts. A longer response scores 0."""
ERRORS = {
    "raised": (Cause.FUNCTION_RAISED, " raised {message}"),
    "returned": (Cause.FUNCTION_VALUE, " returned {message}"),
    "timeout": (Cause.FUNCTION_TIMEOUT, ": the sample took longer than {timeout:g} s"),
    "killed": (Cause.FUNCTION_DIED, ": its process died"),
    "sandbox": (Cause.SANDBOX, ": {message}"),
}
"""The cause and the reason of a failed score, after the rule's name, for each `error` of a task's result."""
THREAD_BATCH = BatchKey(64)
"""Key for batches of up to 64 long samples, which a thread scores."""
SINGLE_SAMPLE = BatchKey(1)
"""Key for batches of one sample, so that no isolated sample waits for a slower one."""
QUESTION_BATCH = BatchKey(8, "questions")
"""Key for batches of up to 8 questions. A batch is sent as one task, because sending a task takes about as
long as deciding a question."""
MAX_CACHED_VERDICTS = 8192
"""Maximum number of verdicts that a process caches."""
MAX_QUESTION = 2000
"""Maximum number of characters of a question whose verdict is cached."""

Verdicts = LruCache[tuple[str, Question], Ruling]
"""Cached verdicts by tenant and question. Tenants do not share verdicts, because response times would reveal which
questions other tenants have asked."""

VerifierOutcome = Score | Ruling | Mapping[str, Any] | RewardstackError
"""The outcome of a sample: a score, the verdict on its question, a task's result with `error`, or an exception."""

log = logging.getLogger(__name__)


class Isolation:
    """The isolated processes of a pool, and the time at which they last finished a task.

    Args:
        client: sends tasks to the processes.
        timeout: seconds that one task may run.
    """

    def __init__(self, client: IsolationClient, timeout: float) -> None:
        self._client = client
        self.timeout = timeout
        self.last_progress = time.monotonic()

    async def run(
        self, task: Mapping[str, Any], deadline: SharedDeadline, tenant: str, *, stop_if_slow: bool = False
    ) -> dict[str, Any]:
        """Run a task and return its result. Drop the task once all its callers have reached their deadlines.

        Args:
            task: the argument of the function that the process calls, `scoring.task.execute` or `code.runner.execute`.
            deadline: the deadline, shared by all callers that wait for the task.
            tenant: owner of the task.
            stop_if_slow: whether to stop the task once it counts as slow.

        Raises:
            DeadlineError: all callers reached their deadlines.
            ServiceError: isolated processes are unavailable.
        """
        work = asyncio.ensure_future(self._client.run(task, self.timeout, stop_if_slow=stop_if_slow, tenant=tenant))
        try:
            with deadline.in_queue(self):
                while not work.done():
                    left = deadline.remaining()
                    if left <= 0:
                        raise DeadlineError(
                            "not scored before its deadline; the isolated processes are busy with this sample or with "
                            "others",
                            cause=Cause.ISOLATION_BUSY,
                        )
                    await asyncio.wait({work}, timeout=left)
        finally:
            work.cancel()
        result = work.result()
        self.last_progress = time.monotonic()
        return result


class LocalSample(NamedTuple):
    """A sample, and the question that the math verifier must decide; None if a rule must evaluate the whole sample."""

    item: Item
    question: Question | None = None


class LocalRule(Scorer[LocalSample]):
    """Base class of scorers that run a rule in this process or in isolated processes.

    Args:
        rule: the rule.
        isolation: the isolated processes, which run the rule unless it is an inline rule.
        tenant: owner of the samples.
    """

    where = "in an isolated process"
    """Where the rule runs, for a trace."""

    def __init__(self, rule: Rule, isolation: Isolation, tenant: str = "") -> None:
        self.source = f"rule:{rule.name}"
        self.timeout = isolation.timeout + STALL_SECONDS
        self._rule = rule
        self._isolation = isolation
        self._tenant = tenant

    def prepare(self, item: Item) -> LocalSample:
        """Return the item as a sample, without changing it."""
        return LocalSample(item)

    async def keys(self, samples: Sequence[LocalSample], context: Context) -> list[Key | None]:
        """Return the samples' cache keys (`rule_key`). Clients compute the same keys from `/v1/reward_types`."""
        rule = self._rule
        return rule_key(rule.name, rule.fingerprint, rule.fields, [sample.item for sample in samples], rule.range)

    def describe(self, item: Item, sample: LocalSample) -> Record:
        """Return the function's name, range and input fields; for a short sample, also what the function reads."""
        rule = self._rule
        facts: Record = {"function": rule.name, "range": "{:g} to {:g}".format(*rule.range)}
        if fields := read_fields(item, rule.fields):
            facts["given"] = fields
        if not _is_short(item):
            return facts
        try:
            return {**facts, **self._read_out(item)}
        except RequestError as error:
            return {**facts, "unreadable": str(error)}
        except Exception:
            log.exception("%s: cannot show what the function reads from the sample", self.source)
            return facts

    def _read_out(self, item: Item) -> Record:
        return {} if self._rule.read_out is None else self._rule.read_out(item.solution, item.references, item.extra)

    def _trace_where(self, context: Context) -> None:
        if context.trace is not None:
            context.trace.note("function", {"ran": self.where})

    async def _score_isolated(self, item: Item, deadline: SharedDeadline) -> Score:
        if len(item.solution) > MAX_ISOLATED_RESPONSE:
            return Score(
                0.0, reason=f"the response is longer than {MAX_ISOLATED_RESPONSE} characters", source=self.source
            )
        task = make_task(self._rule, item.solution, item.references, read_fields(item, self._rule.fields))
        result = await self._isolation.run(task, deadline, self._tenant)
        output_log.add(self._rule.name, result.get("output"))
        if result.get("error") == "unwritable":
            return serialization_error(task["extra"]).as_score(self.source)
        return self._read_result(result)

    def _score_inline(self, item: Item) -> Score:
        try:
            return self._to_score(evaluate(self._rule, item.solution, item.references, item.extra))
        except Exception as error:
            log.exception("%s raised", self.source)
            why = f"{self._rule.name} raised {type(error).__name__}"
            return Score.failed(why, self.source, Cause.FUNCTION_RAISED)

    def _read_result(self, result: Mapping[str, Any]) -> Score:
        error = result.get("error")
        if error == "oversize":
            why = "the sample's references and extra_info are too long"
            return Score.unscored(why, self.source, cause=Cause.TOO_LONG)
        if error is not None:
            cause, what = ERRORS[error]
            what = what.format(timeout=self._isolation.timeout, message=result.get("message", ""))
            return Score.failed(f"{self._rule.name}{what}", self.source, cause)
        return self._to_score(Outcome.from_dict(result))

    def _to_score(self, outcome: Outcome) -> Score:
        if outcome.value is None:
            return Score.unscored(outcome.reason, self.source, outcome.field, outcome.cause)
        low, high = self._rule.range
        if not low <= outcome.value <= high:
            why = f"{self._rule.name} gave {outcome.value:g}, outside its range of {low:g} to {high:g}"
            return Score.failed(why, self.source, Cause.FUNCTION_VALUE)
        parts = None if outcome.parts is None else dict(outcome.parts)
        return Score(outcome.value, reason=outcome.reason, source=self.source, parts=parts)


class IsolatedRule(LocalRule):
    """Scores by one rule in isolated processes."""

    def batch(self, sample: LocalSample) -> BatchKey:
        """Return the key for batches of one sample."""
        return SINGLE_SAMPLE

    async def score(self, samples: Sequence[LocalSample], context: Context) -> list[Score]:
        """Return one score for each sample, in order.

        Raises:
            DeadlineError: all callers reached their deadlines.
            ServiceError: isolated processes are unavailable.
        """
        scores = [
            self._with_hint(sample.item, await self._score_isolated(sample.item, context.deadline))
            for sample in samples
        ]
        self._trace_where(context)
        return scores

    def _with_hint(self, item: Item, score: Score) -> Score:
        """Add a hint to a score's reason if a field name of `extra_info` is most likely a typo."""
        if self._rule.field_parameters and (
            hint := misspelling_hint(self._rule.name, self._rule.field_parameters, tuple(item.extra))
        ):
            score.reason = f"{score.reason}; {hint}" if score.reason else hint
        return score


class ProgramRule(IsolatedRule):
    """Scores by running the policy's programs.

    Tenants share the isolated processes of this rule, and take turns on them. This is safe, because programs run in
    other processes.

    Args:
        rule: the rule.
        isolation: the isolated processes that run the tests.
        counters: counters for scoring.
        tenant: owner of the samples.
        by_fusion: whether SandboxFusion runs the programs.
    """

    where = "in confined processes, one per test"

    def __init__(
        self,
        rule: Rule,
        isolation: Isolation,
        counters: Counters = NO_COUNTERS,
        tenant: str = "",
        *,
        by_fusion: bool = False,
    ) -> None:
        super().__init__(rule, isolation, tenant)
        self._counters = counters
        if by_fusion:
            self.where = "by SandboxFusion, one request per test"

    def _read_result(self, result: Mapping[str, Any]) -> Score:
        self._counters.count_code(result.get("code", {}))
        score = super()._read_result(result)
        score.volatile = bool(result.get("volatile"))
        return score


class InlineRule(LocalRule):
    """Scores by one rule with bounded run time, in the calling process."""

    where = "in the process that scores"

    def batch(self, sample: LocalSample) -> BatchKey:
        """Return the key that batches long samples, which a thread scores."""
        return THREAD_BATCH

    def inline(self, sample: LocalSample) -> Score | LocalSample:
        """Return the score, or the unchanged sample if it is so long that scoring it here would delay other samples."""
        return self._score_inline(sample.item) if _is_short(sample.item) else sample

    async def score(self, samples: Sequence[LocalSample], context: Context) -> list[Score]:
        """Score samples in a thread; return one score for each sample, in order."""
        scores = await asyncio.to_thread(lambda: [self._score_inline(sample.item) for sample in samples])
        self._trace_where(context)
        return scores


class VerifierRule(LocalRule):
    """Scores by one math verifier. All math verifiers of a process share the cached verdicts."""

    def __init__(
        self,
        rule: Rule,
        verifier: Verifier,
        isolation: Isolation,
        verdicts: Verdicts,
        counters: Counters = NO_COUNTERS,
        tenant: str = "",
    ) -> None:
        super().__init__(rule, isolation, tenant)
        self._verifier = verifier
        self._verdicts = verdicts
        self._counters = counters
        self._batcher: Batcher[LocalSample, VerifierOutcome] = Batcher(self._decide, window=0)

    def inline(self, sample: LocalSample) -> Score | LocalSample:
        """Return the score of a clear case, or of a sample with invalid options; else return the sample.

        The returned sample has the question that decides its score. The question is None if the sample is too long, if
        the number of references is 0 or too high, or if an error occurs.
        """
        item = sample.item
        if len(item.solution) > MAX_INLINE or not 0 < len(item.references) <= MAX_INLINE_REFERENCES:
            return sample
        try:
            text = self._verifier.select_text(item.solution)
            question = ask(text, item.references, self._verifier.options(item.extra))
            verdict = question if isinstance(question, Ruling) else decide_fast_path(question)
            if verdict is not None:
                return self._score_verdict(item, verdict)
            assert isinstance(question, Question)
            return LocalSample(item, question)
        except RequestError as error:
            return error.as_score(self.source)
        except Exception:
            log.exception("%s: inline evaluation failed; evaluating the sample in an isolated process", self.source)
        return sample

    def _read_out(self, item: Item) -> Record:
        return read_out(self._verifier.select_text(item.solution), item.references, self._verifier.options(item.extra))

    async def score(self, samples: Sequence[LocalSample], context: Context) -> list[Score]:
        """Return one score for each sample, in order; samples past their deadline are `failed`.

        Raises:
            ConfigError: the isolated processes cannot run the rule.
        """
        if context.trace is not None:
            return [await self._explain(samples[0], context)]
        outcomes: list[Any] = [self._cached_verdict(sample, context.tenant) for sample in samples]
        missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
        if missing:
            undecided = [samples[index] for index in missing]
            keys = [SINGLE_SAMPLE if sample.question is None else QUESTION_BATCH for sample in undecided]
            shares = [sample.question for sample in undecided]
            decided = await self._batcher.ask(undecided, keys, context.waiter_deadline, shares)
            for index, outcome in zip(missing, decided, strict=True):
                outcomes[index] = outcome
                question = samples[index].question
                if question is not None and isinstance(outcome, Ruling) and _is_cacheable(question):
                    self._verdicts.put((context.tenant, question), outcome)
        return [self._score_outcome(sample.item, outcome) for sample, outcome in zip(samples, outcomes, strict=True)]

    def _cached_verdict(self, sample: LocalSample, tenant: str) -> Ruling | None:
        return None if sample.question is None else self._verdicts.get((tenant, sample.question))

    async def _explain(self, sample: LocalSample, context: Context) -> Score:
        """Return the score of a sample, and add the comparisons that decided its question to the trace."""
        assert context.trace is not None
        if sample.question is None:
            score = await self._score_isolated(sample.item, context.deadline)
            self._trace_where(context)
            return score
        task = {**self._task([sample.question]), "with_trace": True}
        result = await self._isolation.run(task, context.deadline, self._tenant)
        context.trace.note("compared", {"ran": self.where, "comparisons": result.get("comparisons")})
        return self._score_outcome(sample.item, result if "error" in result else Ruling(**result["verdicts"][0]))

    async def _decide(self, samples: Sequence[LocalSample], deadline: SharedDeadline) -> Sequence[VerifierOutcome]:
        """Return the outcomes of a batch, which is one sample without a question, or one or more with questions.

        Raises:
            ServiceError: a batch of several questions failed or is slow; the batcher then sends each question alone.
        """
        try:
            if samples[0].question is None:
                return [await self._score_isolated(samples[0].item, deadline)]
            task = self._task([sample.question for sample in samples if sample.question is not None])
            result = await self._isolation.run(task, deadline, self._tenant, stop_if_slow=len(samples) > 1)
        except RewardstackError as error:
            return [error] * len(samples)
        except Exception as error:
            log.exception("%s: cannot send a task to the isolated processes", self.source)
            why = f"internal error: {type(error).__name__}"
            return [ServiceError(why, cause=Cause.INTERNAL_ERROR)] * len(samples)
        if "error" in result:
            if len(samples) > 1:
                raise ServiceError(str(result["error"]))
            return [result]
        self._counters.count_comparisons(verdict["by"] or "values" for verdict in result["verdicts"])
        return [Ruling(**verdict) for verdict in result["verdicts"]]

    def _task(self, questions: Sequence[Question]) -> Record:
        return {"rule": self._rule.name, "fingerprint": self._rule.fingerprint, "questions": questions}

    def _score_outcome(self, item: Item, outcome: VerifierOutcome | Exception) -> Score:
        if isinstance(outcome, Score):
            return outcome
        if isinstance(outcome, Ruling):
            return self._score_verdict(item, outcome)
        if isinstance(outcome, ConfigError):
            raise outcome
        if isinstance(outcome, RewardstackError):
            return outcome.as_score(self.source)
        if isinstance(outcome, Exception):
            raise outcome
        return self._read_result(outcome)

    def _score_verdict(self, item: Item, verdict: Ruling) -> Score:
        return self._to_score(self._verifier.make_outcome(item.solution, verdict))


def _is_short(item: Item) -> bool:
    """Return whether a sample is short enough to score inline. The response counts once for each reference."""
    references = item.references or ("",)
    return len(item.solution) * len(references) + sum(map(len, references)) <= MAX_INLINE


def _is_cacheable(question: Question) -> bool:
    return sum(map(len, question.expected)) + len(question.answer) <= MAX_QUESTION
