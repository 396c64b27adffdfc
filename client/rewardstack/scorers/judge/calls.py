"""The requests for a verdict: trial requests, retries after unreadable replies, and omission of refused fields."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.event_loop import within
from rewardstack.core.lru import LruCache
from rewardstack.core.votes import agreement, combine
from rewardstack.errors import RejectedError, RequestError, ServiceError
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.api import Api, below
from rewardstack.scorers.judge.conversation import Shown
from rewardstack.scorers.judge.labels import LabelTokens
from rewardstack.scorers.judge.models import Model, Models
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import (
    Choice,
    NoProbabilitiesError,
    is_cut,
    read_completion,
    read_label_verdict,
    read_text,
    read_text_verdict,
    read_top_verdict,
)
from rewardstack.scorers.judge.request import CHAT, frame, is_json, reminded
from rewardstack.scorers.judge.rubric import Answers, Rubric, read_answers, read_grades, verdict_of
from rewardstack.scorers.judge.verdict import UNREADABLE, UnreadableError, Verdict
from rewardstack.transport.discovery import RENEWAL, SERVERS
from rewardstack.transport.endpoint import Message

TRIAL = "This is a test of the interface, with nothing to judge. Give the lowest verdict."
"""The user message of a trial request, which tests whether a server supports the fields of a request."""
TRIAL_SHARE = 0.15
"""Maximum share of the remaining time that a trial request may take."""
TRIAL_TOKENS = 16
"""Maximum length of a trial's reply, in tokens; a short one suffices, as servers refuse fields before they generate."""
NO_TRIAL = math.inf
"""Time of the next trial if no trial is needed any more."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class Calls:
    """Requests verdicts from judges.

    Args:
        api: sends the requests.
        models: the models and dialects of the judges.
        trials_meter: counts the usage of trial requests.
    """

    def __init__(self, api: Api, models: Models, trials_meter: Meter) -> None:
        self._api = api
        self._models = models
        self._trials_meter = trials_meter
        self._gave_probabilities: LruCache[tuple[Destination, str], bool] = LruCache(SERVERS)
        self._labels = LabelTokens(api)
        self._trials: LruCache[Hashable, asyncio.Lock] = LruCache(SERVERS)
        self._next_trial: LruCache[Hashable, float] = LruCache(SERVERS)

    def is_accepted(self, plan: Plan, model: Model) -> bool:
        """Return whether the judge is known to accept the plan's fields, from its identity or an earlier request."""
        return not model.dialect.guessed or self._next_trial.get(_kind(plan, model)) == NO_TRIAL

    async def send_trial(self, plan: Plan, model: Model, deadline: SharedDeadline) -> None:
        """Send one trial request to find out whether a judge accepts the plan's fields, before many samples are sent.

        Without an answer, the samples are sent anyway, and the next trial is `RENEWAL` seconds later. The usage of the
        trial is not charged to a sample.

        Args:
            plan: the plan of a sample for which `is_accepted` is false.
            model: the judge's model.
            deadline: the caller's deadline.
        """
        kind = _kind(plan, model)
        lock = self._trials.get(kind)
        if lock is None:
            self._trials.put(kind, lock := asyncio.Lock())
        try:
            await within(TRIAL_SHARE * deadline.remaining(), self._try(kind, lock, plan, model, deadline))
        except (ServiceError, asyncio.TimeoutError) as error:
            log.debug("the trial request to the judge failed, its supported fields are unknown: %s", error)

    async def _try(
        self, kind: Hashable, lock: asyncio.Lock, plan: Plan, model: Model, deadline: SharedDeadline
    ) -> None:
        async with lock:
            if time.monotonic() < (self._next_trial.get(kind) or 0.0):
                return
            self._next_trial.put(kind, time.monotonic() + RENEWAL)
            short = replace(plan.options, max_new_tokens=TRIAL_TOKENS, thinking_budget=TRIAL_TOKENS)
            try:
                with suppress(NoLogprobsError):  # no trial is needed after this error, either
                    trial = plan._replace(options=short, meter=None, shown=Shown("", ""))
                    await self._ask(trial, model, TRIAL, deadline, answers=plan.answers(plan.chunks[0]))
            except RejectedError as error:
                if error.status not in (400, 422):
                    raise
            self._next_trial.put(_kind(plan, self._models.choose(model.name, plan.destination)), NO_TRIAL)

    def verdict(
        self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline
    ) -> Coroutine[Any, Any, Verdict]:
        """Return a coroutine for the judge's verdict with one reference, aggregated over votes if there are several.

        Args:
            plan: the plan of the sample.
            model: the judge's model.
            reference: one of the plan's references.
            deadline: deadline of the batch.

        Raises:
            UnreadableError: a reply has no verdict.
            RequestError: the labels in the options are invalid for this model, or the judge returns no probabilities.
            ServiceError: the judge did not answer.
        """
        if plan.options.labels:
            return self._by_labels(plan, model, reference, deadline)
        if plan.options.num_samples > 1:
            return self._by_votes(plan, model, reference, deadline)
        if plan.options.verdict == "rubric":
            return self._by_criteria(plan, model, reference, deadline)
        return self._by_text(plan, model, reference, 0, deadline)

    async def _by_votes(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        ask = [self._by_text(plan, model, reference, vote, deadline) for vote in range(plan.options.num_samples)]
        outcomes = await asyncio.gather(*ask, return_exceptions=True)
        values = [one.value for one in outcomes if isinstance(one, Verdict)]
        if 2 * len(values) <= len(outcomes):
            raise next(one for one in outcomes if isinstance(one, BaseException))
        note = "" if len(values) == len(outcomes) else f"{len(values)} of {len(outcomes)} votes"
        return Verdict(combine(values, plan.options.aggregate), note, agreement=agreement(values, len(outcomes)))

    async def _by_text(self, plan: Plan, model: Model, reference: str, vote: int, deadline: SharedDeadline) -> Verdict:
        """Return the verdict in a text reply; ask once more if the reply has none."""
        options, question = plan.options, (plan.user(reference, plan.rubric), ())

        def read(reply: Choice, model: Model, _: Answers) -> Verdict:
            structured = is_json(options, model.dialect)
            scale, thinking = options.template.scale, options.enable_thinking
            return Verdict(read_text_verdict(reply, scale, thinking=thinking, structured=structured))

        return await self._ask_twice(plan, model, lambda: question, read, deadline, vote)

    async def _by_criteria(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        asked = [self._answers(plan, model, reference, chunk, deadline) for chunk in plan.chunks]
        shares = [share for found in await gather_all(asked) for share in found]
        return verdict_of(plan.rubric, shares, clip=plan.options.clip_negative)

    async def grades(self, plan: Plan, model: Model, deadline: SharedDeadline) -> list[float]:
        """Return the scores of the candidates in the plan's list, from 0 to 1; ask once more if one is missing.

        Raises:
            UnreadableError: the second reply does not have one score for each candidate, either.
            ServiceError: the judge did not answer.
        """
        question = plan.user(plan.references[0]), plan.answers()

        def read(reply: Choice, _: Model, answers: Answers) -> list[float]:
            text = read_text(reply, thinking=plan.options.enable_thinking)
            return read_grades(text, len(answers), cut=is_cut(reply))

        return await self._ask_twice(plan, model, lambda: question, read, deadline)

    async def _answers(
        self, plan: Plan, model: Model, reference: str, criteria: Rubric, deadline: SharedDeadline
    ) -> list[float]:
        """Return how far each criterion is met, from 0 to 1; ask once more for criteria without an answer."""
        found: dict[int, float] = {}

        def missing() -> list[int]:
            return [at for at in range(len(criteria)) if at not in found]

        def question() -> tuple[str, Answers]:
            asked = tuple(criteria[at] for at in missing())
            return plan.user(reference, asked), plan.answers(asked)

        def read(reply: Choice, _: Model, answers: Answers) -> list[float]:
            asked, why = missing(), ""
            try:
                text = read_text(reply, thinking=plan.options.enable_thinking)
                found.update((asked[at], share) for at, share in read_answers(text, answers, cut=is_cut(reply)).items())
            except UnreadableError as error:
                why = f"; {str(error).removeprefix(f'{UNREADABLE}: ')}"
            if left := missing():
                names = ", ".join(criteria[at].name for at in left)[:200]
                raise UnreadableError(f"no answer for {len(left)} of {len(criteria)} criteria: {names}{why}")
            return [found[at] for at in range(len(criteria))]

        return await self._ask_twice(plan, model, question, read, deadline)

    async def _ask_twice(
        self,
        plan: Plan,
        model: Model,
        question: Callable[[], tuple[str, Answers]],
        read: Callable[[Choice, Model, Answers], T],
        deadline: SharedDeadline,
        vote: int = 0,
    ) -> T:
        """Return what `read` finds in a reply; if it finds nothing, ask once more, with a reminder of the format.

        Args:
            plan: the plan of the sample.
            model: the judge's model.
            question: returns the user message and the answers that the reply should have; called for each request.
            read: reads a reply of a model, given these answers; raises UnreadableError if something is missing.
            deadline: deadline of the batch.
            vote: number of the vote.

        Raises:
            UnreadableError: nothing can be read from the second reply, either.
            ServiceError: the judge did not answer.
        """
        user, answers = question()
        reply, model = await self._ask(plan, model, user, deadline, vote, answers)
        try:
            return read(reply, model, answers)
        except UnreadableError as error:
            log.debug("asked once more: %s", error)
        user, answers = question()
        user = reminded(user, plan.options, model.dialect, answers)
        reply, model = await self._ask(plan, model, user, deadline, vote, answers)
        return read(reply, model, answers)

    async def _ask(
        self, plan: Plan, model: Model, user: str, deadline: SharedDeadline, vote: int = 0, answers: Answers = ()
    ) -> tuple[Choice, Model]:
        """Return a reply, and the model with the accepted dialect; while fields are refused, omit them and send again.

        Raises:
            RequestError: the judge does not support this kind of verdict or these labels.
            ServiceError: there is no reply.
        """
        while True:
            ids = await self._label_ids(plan, model, deadline) if plan.options.labels else ()
            request = frame(plan.options, model.name, vote, ids, model.dialect, answers)
            try:
                reply = await self._completion(plan, request.body(user, plan.shown.images), deadline)
            except RejectedError as error:
                better = self._models.learn(error, plan.destination, model, request.fields)
                if better == model:
                    raise
                model = better
            else:
                if model.dialect.guessed:
                    self._next_trial.put(_kind(plan, model), NO_TRIAL)
                return reply, model

    async def _label_ids(self, plan: Plan, model: Model, deadline: SharedDeadline) -> tuple[int, ...]:
        """Return the IDs of the label tokens; empty if probabilities are read from the most likely tokens."""
        if not model.dialect.labels:
            raise NoLogprobsError(model.name)
        if model.dialect.labels == "top":
            return ()
        return await self._labels.find([name for name, _ in plan.options.labels], model, plan.destination, deadline)

    async def _completion(self, plan: Plan, body: bytes, deadline: SharedDeadline) -> Choice:
        """Send a chat request and return the first choice of the completion.

        Raises:
            ServiceError: there is no valid reply.
            BudgetError: the budget is spent.
        """
        meter = plan.meter or self._trials_meter

        def read(data: bytes) -> Choice:
            meter.count_tokens(data)
            return read_completion(data)

        path = below(plan.destination.urls, CHAT)
        message = Message("POST", path, body, plan.headers, meter.admit, read, is_hedged=True)
        choice: Choice = await self._api.ask(plan.destination, message, deadline)
        return choice

    async def _by_labels(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        options = plan.options
        reply, model = await self._ask(plan, model, plan.user(reference, plan.rubric), deadline)
        names, values = zip(*options.labels, strict=True)
        try:
            if model.dialect.labels == "top":
                value, mass = read_top_verdict(reply, names, values, options.label_mass_floor)
                self._gave_probabilities.put((plan.destination, model.name), True)
            else:
                ids = await self._label_ids(plan, model, deadline)
                value, mass = read_label_verdict(reply, ids, values, options.label_mass_floor)
        except NoProbabilitiesError as error:
            if self._gave_probabilities.get((plan.destination, model.name)):
                raise
            raise NoLogprobsError(model.name) from error
        return Verdict(value, label_mass=mass)


def _kind(plan: Plan, model: Model) -> Hashable:
    """Return a key that is equal for requests with the same fields, because a server accepts all of them or none.

    Some servers only accept temperature 1 or `top_p` 1, so the key tells whether each of the two is 1.
    """
    options, answers = plan.options, plan.answers(plan.chunks[0])
    fields = frame(options, model.name, dialect=model.dialect, answers=answers).fields
    usual = "temperature" in fields and options.temperature == 1, "top_p" in fields and options.top_p == 1
    return plan.destination, model.name, bool(options.labels), fields, usual


class NoLogprobsError(RequestError):
    """A sample has `verdict: "logprob"`, but the judge does not return probabilities.

    Args:
        model: the judge's model.
    """

    def __init__(self, model: str) -> None:
        why = f"the judge returns no token probabilities for {model}, which 'logprob' needs; leave `verdict` out"
        super().__init__(f"extra_info.verdict: {why}", "extra_info.verdict")


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Wait until all of `work` has ended; return the results in order, or raise the first error in this order."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for one in outcomes:
        if isinstance(one, BaseException):
            raise one
    return [one for one in outcomes if not isinstance(one, BaseException)]
