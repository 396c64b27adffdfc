"""Request verdicts from a judge; retry after unreadable replies, and omit the fields that the server rejects."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.core.fields import field_error
from rewardstack.core.lru import LruCache
from rewardstack.core.votes import agreement, combine
from rewardstack.errors import RejectedError, RequestError, ServiceError
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.api import Api, api_path
from rewardstack.scorers.judge.conversation import ShownParts
from rewardstack.scorers.judge.dialect import LIMIT_FIELDS, Value
from rewardstack.scorers.judge.labels import LabelTokens
from rewardstack.scorers.judge.models import Model, Models
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.rejected_fields import (
    is_too_long,
    is_unfinished,
    names_other_limit,
    omit_fields,
    rejected_fields,
)
from rewardstack.scorers.judge.reply import (
    Choice,
    NoProbabilitiesError,
    check_complete,
    is_complete,
    parse_label_verdict,
    parse_text_verdict,
    parse_top_verdict,
    read_completion,
    read_text,
)
from rewardstack.scorers.judge.request import CHAT, make_frame, with_reminder
from rewardstack.scorers.judge.rubric import Answers, Rubric, parse_answers, parse_grades, rubric_verdict
from rewardstack.scorers.judge.verdict import IncompleteError, UnreadableError, Verdict
from rewardstack.transport import timing
from rewardstack.transport.discovery import MAX_SERVERS
from rewardstack.transport.message import Message

TRIAL_MESSAGE = "This is a test of the interface, with nothing to judge. Give the lowest verdict."
"""User message of a trial request, which tests whether a server supports the fields of a request."""
TRIAL_SHARE = 0.15
"""Maximum share of the caller's remaining time that a trial request may take."""
TRIAL_TOKENS = 16
"""Maximum length of the reply to a trial request, in tokens. A few suffice: servers reject fields before generating."""
LIMIT_FACTOR = 4
"""Factor of `max_new_tokens` in the second request after a reply that was truncated."""
NO_TRIAL = math.inf
"""Time of the next trial request for fields that a judge is known to accept: never."""

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
        self._returned_probabilities: LruCache[tuple[Destination, str], bool] = LruCache(MAX_SERVERS)
        self._labels = LabelTokens(api)
        self._trial_locks: LruCache[Hashable, asyncio.Lock] = LruCache(MAX_SERVERS)
        self._next_trial: LruCache[Hashable, float] = LruCache(MAX_SERVERS)

    def is_accepted(self, plan: Plan, model: Model) -> bool:
        """Return whether the judge is known to accept the fields of the plan's requests, so that no trial is needed.

        This is known if the dialect is not a guess, or if the judge has answered a request with the same fields.
        """
        return not model.dialect.is_guessed or self._next_trial.get(_trial_key(plan, model)) == NO_TRIAL

    async def send_trial(self, plan: Plan, model: Model, deadline: SharedDeadline) -> None:
        """Send one trial request, to find out whether a judge accepts a plan's fields before many samples are sent.

        If the judge does not answer, the samples are sent anyway, and the next trial is after `RENEWAL` seconds. The
        usage of the trial is not part of a sample's usage.

        Args:
            plan: the plan of a sample for which `is_accepted` is false.
            model: the judge's model.
            deadline: the caller's deadline.
        """
        key = _trial_key(plan, model)
        lock = self._trial_locks.get(key)
        if lock is None:
            self._trial_locks.put(key, lock := asyncio.Lock())
        try:
            await run_with_timeout(
                TRIAL_SHARE * deadline.remaining(), self._send_trial_once(key, lock, plan, model, deadline)
            )
        except (ServiceError, asyncio.TimeoutError) as error:
            log.debug("the trial request to the judge failed, so its supported fields are unknown: %s", error)

    async def _send_trial_once(
        self, key: Hashable, lock: asyncio.Lock, plan: Plan, model: Model, deadline: SharedDeadline
    ) -> None:
        """Send the trial request, unless another caller has sent one in the last `RENEWAL` seconds."""
        async with lock:
            if time.monotonic() < (self._next_trial.get(key) or 0.0):
                return
            self._next_trial.put(key, time.monotonic() + timing.RENEWAL)
            short_options = replace(plan.options, max_new_tokens=TRIAL_TOKENS, thinking_budget=TRIAL_TOKENS)
            try:
                # The judge accepts the fields, even if its short reply is unreadable or has no probabilities. If it
                # rejects a value that the sample sets, other samples may have other values.
                with suppress(RequestError, UnreadableError):
                    trial = plan._replace(options=short_options, meter=None, shown=ShownParts("", ""))
                    await self._ask(trial, model, TRIAL_MESSAGE, deadline, answers=plan.valid_answers(plan.chunks[0]))
            except RejectedError as error:
                if error.status not in (400, 422):
                    raise
            corrected = self._models.choose(model.name, plan.destination, plan.options.omit)
            self._next_trial.put(_trial_key(plan, corrected), NO_TRIAL)

    def verdict(
        self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline
    ) -> Coroutine[Any, Any, Verdict]:
        """Return a coroutine that requests the verdict for one reference; several votes are combined into one verdict.

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
            return self._label_verdict(plan, model, reference, deadline)
        if plan.options.num_samples > 1:
            return self._aggregate_votes(plan, model, reference, deadline)
        if plan.options.verdict == "rubric":
            return self._rubric_verdict(plan, model, reference, deadline)
        return self._text_verdict(plan, model, reference, 0, deadline)

    async def _aggregate_votes(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        """Request all votes and combine them; if at least half of the votes fail, raise the first error."""
        ask = [self._text_verdict(plan, model, reference, vote, deadline) for vote in range(plan.options.num_samples)]
        outcomes = await asyncio.gather(*ask, return_exceptions=True)
        values = [outcome.value for outcome in outcomes if isinstance(outcome, Verdict)]
        if 2 * len(values) <= len(outcomes):
            raise next(outcome for outcome in outcomes if isinstance(outcome, BaseException))
        note = "" if len(values) == len(outcomes) else f"{len(values)} of {len(outcomes)} votes"
        return Verdict(combine(values, plan.options.aggregate), note, agreement=agreement(values, len(outcomes)))

    def _text_verdict(
        self, plan: Plan, model: Model, reference: str, vote: int, deadline: SharedDeadline
    ) -> Coroutine[Any, Any, Verdict]:
        """Return a coroutine that requests the verdict as text, and asks once more if the reply has no verdict."""
        return self._ask_with_retry(plan, model, reference, _text_question, _read_text_verdict, deadline, vote)

    async def _rubric_verdict(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        work = [self._criterion_shares(plan, model, reference, chunk, deadline) for chunk in plan.chunks]
        shares = [share for chunk_shares in await gather_all(work) for share in chunk_shares]
        return rubric_verdict(plan.rubric, shares, clip_negative=plan.options.clip_negative)

    async def grade_candidates(self, plan: Plan, model: Model, deadline: SharedDeadline) -> list[float]:
        """Return the scores of the candidates in a listwise plan, from 0 to 1; retry once if the reply is unreadable.

        Raises:
            UnreadableError: after the retry, the reply still does not have one valid score for each candidate.
            ServiceError: the judge did not answer.
        """
        reference = plan.references[0]
        return await self._ask_with_retry(plan, model, reference, _grades_question, _read_grades, deadline)

    async def _criterion_shares(
        self, plan: Plan, model: Model, reference: str, criteria: Rubric, deadline: SharedDeadline
    ) -> list[float]:
        """Return how far each criterion is met, from 0 to 1; request missing answers once more."""
        shares: dict[int, float] = {}

        def unanswered() -> list[int]:
            return [index for index in range(len(criteria)) if index not in shares]

        def question(plan: Plan, reference: str) -> tuple[str, Answers]:
            rest = tuple(criteria[index] for index in unanswered())
            return plan.user_message(reference, rest), plan.valid_answers(rest)

        def read(plan: Plan, reply: Choice, answers: Answers) -> list[float]:
            positions, why = unanswered(), ""
            try:
                new_shares = parse_answers(read_text(reply), answers)
                shares.update((positions[index], share) for index, share in new_shares.items())
            except IncompleteError:
                raise
            except UnreadableError as error:
                why = f"; {error.why}"
            if left := unanswered():
                names = ", ".join(criteria[index].name for index in left)[:200]
                raise UnreadableError(f"no answer for {len(left)} of {len(criteria)} criteria: {names}{why}")
            return [shares[index] for index in range(len(criteria))]

        return await self._ask_with_retry(plan, model, reference, question, read, deadline)

    async def _ask_with_retry(
        self,
        plan: Plan,
        model: Model,
        reference: str,
        question: Callable[[Plan, str], tuple[str, Answers]],
        read: Callable[[Plan, Choice, Answers], T],
        deadline: SharedDeadline,
        vote: int = 0,
    ) -> T:
        """Return what `read` returns for a reply; if the reply is unreadable, ask once more, with a reminder.

        Args:
            plan: the plan of the sample.
            model: the judge's model.
            reference: one of the plan's references.
            question: returns the user message for a plan and reference, and the valid answers; called before each
                request.
            read: parses a reply, given the plan and the valid answers; raises UnreadableError if it cannot.
            deadline: deadline of the batch.
            vote: index of the vote.

        Raises:
            UnreadableError: the second reply is unreadable, too.
            ServiceError: the judge did not answer.
        """
        user, answers = question(plan, reference)
        try:
            reply, model = await self._ask(plan, model, user, deadline, vote, answers)
            return read(plan, reply, answers)
        except UnreadableError as error:
            log.debug("asking the judge once more: %s", error)
            unreadable = error
        user, answers = question(plan, reference)
        return read(plan, await self._ask_again(plan, model, user, deadline, vote, answers, unreadable), answers)

    async def _ask_again(
        self,
        plan: Plan,
        model: Model,
        user: str,
        deadline: SharedDeadline,
        vote: int,
        answers: Answers,
        unreadable: UnreadableError,
    ) -> Choice:
        """Ask with a reminder after an unreadable reply, and for more tokens if it was truncated; return the reply.

        Raises:
            UnreadableError: `unreadable`, because the judge rejects more tokens.
            ServiceError: the judge did not answer.
        """
        is_truncated = isinstance(unreadable, IncompleteError) and unreadable.is_truncated
        if is_truncated:
            _warn_of_truncation(model.name, plan.options.max_new_tokens)
        user = with_reminder(user, plan.options, model.dialect, answers)
        factor = LIMIT_FACTOR if is_truncated else 1
        try:
            reply, _ = await self._ask(plan, model, user, deadline, vote, answers, factor)
        except RejectedError as error:
            raise unreadable if is_truncated else error from error
        return reply

    async def _ask(
        self,
        plan: Plan,
        model: Model,
        user: str,
        deadline: SharedDeadline,
        vote: int = 0,
        answers: Answers = (),
        limit_factor: int = 1,
    ) -> tuple[Choice, Model]:
        """Send a request; after each rejection of fields, send it again without these fields.

        The fields are left out of later requests if the judge answers without them: an error may name them by chance.

        Returns:
            The reply, and the model with the dialect that the judge accepts.

        Raises:
            RequestError: the judge does not support this kind of verdict, these labels, or a value of the sample.
            IncompleteError: the judge reports that it could not finish its reply.
            ServiceError: there is no reply.
        """
        refusal = None
        while True:
            _check_own_values(plan, model)
            ids = await self._label_ids(plan, model, deadline) if plan.options.labels else ()
            request = make_frame(plan.options, model.name, vote, ids, model.dialect, answers, limit_factor)
            try:
                reply = await self._request_completion(plan, request.body(user, plan.shown.images), deadline)
            except RejectedError as error:
                others = _fields_to_omit(error, plan, (*plan.texts(user), request.system), request.fields, limit_factor)
                model, refusal = model._replace(dialect=omit_fields(model.dialect, others)), error
            else:
                if refusal is not None:
                    self._models.record_rejection(refusal, plan.destination, model, plan.options.omit)
                if model.dialect.is_guessed:
                    self._next_trial.put(_trial_key(plan, model), NO_TRIAL)
                return reply, model

    async def is_too_long(self, plan: Plan, model: Model, deadline: SharedDeadline) -> bool:
        """Return whether the plan's prompt is longer than the judge's context, which a request for few tokens tests."""
        options = replace(plan.options, max_new_tokens=TRIAL_TOKENS, thinking_budget=TRIAL_TOKENS)
        user = plan.user_message(plan.references[0])
        try:
            await self._ask(plan._replace(options=options), model, user, deadline, answers=plan.valid_answers())
        except RejectedError as error:
            return is_too_long(error, plan.texts(user))
        except (ServiceError, RequestError):
            return False
        return False

    async def _label_ids(self, plan: Plan, model: Model, deadline: SharedDeadline) -> tuple[int, ...]:
        """Return the IDs of the label tokens; empty if the dialect reads the most likely tokens instead."""
        if not model.dialect.label_lookup:
            raise NoLogprobsError(model.name)
        if model.dialect.label_lookup == "top":
            return ()
        return await self._labels.find([name for name, _ in plan.options.labels], model, plan.destination, deadline)

    def _request_completion(self, plan: Plan, body: bytes, deadline: SharedDeadline) -> Coroutine[Any, Any, Choice]:
        """Return a coroutine that sends a chat request and returns the first choice of the completion.

        Raises:
            ServiceError: there is no valid reply.
            BudgetError: the budget is used up.
        """
        meter = plan.meter or self._trials_meter
        path, read = api_path(plan.destination.urls, CHAT), partial(_read_and_count, meter)
        message = Message("POST", path, body, plan.headers, meter.admit, read, is_hedged=True)
        return self._api.ask(plan.destination, message, deadline)

    async def _label_verdict(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        """Return the verdict from the probabilities of labels.

        Raises:
            NoLogprobsError: the judge returns no probabilities, and has never returned any.
            NoProbabilitiesError: this reply has no probabilities, but an earlier one had.
            ServiceError, RequestError: as `verdict` does.
        """
        options = plan.options
        user = plan.user_message(reference, plan.rubric)
        reply, model = await self._ask(plan, model, user, deadline)
        if not is_complete(reply, is_label=True):
            reply, model = await self._ask(plan, model, user, deadline)
        check_complete(reply, is_label=True)
        names, values = zip(*options.labels, strict=True)
        try:
            if model.dialect.label_lookup == "top":
                value, mass = parse_top_verdict(reply, names, values, options.label_mass_floor)
                self._returned_probabilities.put((plan.destination, model.name), True)
            else:
                ids = await self._label_ids(plan, model, deadline)
                value, mass = parse_label_verdict(reply, ids, values, options.label_mass_floor)
        except NoProbabilitiesError as error:
            if self._returned_probabilities.get((plan.destination, model.name)):
                raise
            raise NoLogprobsError(model.name) from error
        return Verdict(value, label_mass=mass)


def _fields_to_omit(
    error: RejectedError, plan: Plan, texts: Sequence[str], fields: Mapping[str, Any], limit_factor: int
) -> Mapping[str, Value]:
    """Return the fields that the judge rejects, without those whose value the sample sets.

    Args:
        error: the judge's error.
        plan: the plan of the sample.
        texts: the texts of the request, which the error may quote.
        fields: the fields of the request that may be omitted.
        limit_factor: factor of the token limit; a limit that was raised is not a rejected field.

    Raises:
        IncompleteError: the judge reports that it could not finish its reply.
        RequestError: the judge rejects only values of the sample.
        RejectedError: the judge rejects no field.
    """
    if is_unfinished(error, texts):
        raise IncompleteError(str(error), is_truncated="limit was reached" in error.text) from error
    rejected = rejected_fields(error, fields, texts)
    if limit_factor > 1:
        rejected = {field: value for field, value in rejected.items() if field not in LIMIT_FIELDS}
    own = plan.own_fields.keys() - (LIMIT_FIELDS if names_other_limit(error) else ())
    others = {field: value for field, value in rejected.items() if field not in own}
    if others:
        return others
    if rejected:
        raise _own_value_error(*plan.own_fields[next(iter(rejected))], str(error))
    raise error


def _check_own_values(plan: Plan, model: Model) -> None:
    """Raise RequestError if the judge is known to reject a value that the sample sets."""
    values = dict(model.dialect.values)
    for field, (option, value) in plan.own_fields.items():
        if field in plan.options.omit or (field in LIMIT_FIELDS and model.dialect.limit_field != field):
            continue
        is_accepted = value <= values.get(field, value) if field in LIMIT_FIELDS else values.get(field, value) == value
        if not is_accepted:
            demand = "no value" if values[field] is None else f"only {values[field]}"
            raise _own_value_error(option, value, f"{model.name} accepts {demand}")


def _own_value_error(option: str, value: Any, why: str) -> RequestError:
    return field_error(option, f"the judge rejects the value {value}; leave it out, or set another one ({why})")


@lru_cache
def _warn_of_truncation(model: str, limit: int) -> None:
    log.warning(
        "replies of %s are truncated at max_new_tokens = %d; they are requested once more with up to %d times as many "
        "tokens, which takes time; raise max_new_tokens",
        model,
        limit,
        LIMIT_FACTOR,
    )


def _text_question(plan: Plan, reference: str) -> tuple[str, Answers]:
    return plan.user_message(reference, plan.rubric), ()


def _read_text_verdict(plan: Plan, reply: Choice, _: Answers) -> Verdict:
    options = plan.options
    return Verdict(parse_text_verdict(reply, options.template.scale))


def _grades_question(plan: Plan, reference: str) -> tuple[str, Answers]:
    return plan.user_message(reference), plan.valid_answers()


def _read_grades(plan: Plan, reply: Choice, answers: Answers) -> list[float]:
    return parse_grades(read_text(reply), len(answers))


def _read_and_count(meter: Meter, data: bytes) -> Choice:
    """Count the tokens of a completion, and return its first choice; the tokens count even if there is no choice."""
    meter.count_tokens(data)
    return read_completion(data)


def _trial_key(plan: Plan, model: Model) -> Hashable:
    """Return a key for the fields of a request; a server accepts either all or none of the requests with one key."""
    answers = plan.valid_answers(plan.rubric[: plan.options.max_criteria])
    return plan.destination, model.name, *_field_key(plan.options, model, answers)


@lru_cache(maxsize=512)
def _field_key(options: Options, model: Model, answers: Answers) -> tuple[Hashable, ...]:
    """Return the part of a trial key that describes the fields of a request.

    It has three items: whether the verdict is read from labels; the names of the fields; and for each of `temperature`
    and `top_p`, whether it is sent with the value 1, because some servers accept only this value.
    """
    fields = make_frame(options, model.name, dialect=model.dialect, answers=answers).fields
    uses_ones = "temperature" in fields and options.temperature == 1, "top_p" in fields and options.top_p == 1
    return bool(options.labels), frozenset(fields), uses_ones


class NoLogprobsError(RequestError):
    """A sample has `verdict: "logprob"`, but the judge does not return probabilities.

    Args:
        model: the judge's model.
    """

    def __init__(self, model: str) -> None:
        why = f"'logprob' needs token probabilities, but the judge returns none for {model}; leave `verdict` out"
        super().__init__(f"extra_info.verdict: {why}", "extra_info.verdict")


async def gather_all(work: Iterable[Awaitable[T]]) -> list[T]:
    """Wait until all of `work` has ended; return the results in order, or raise the first error in this order."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
