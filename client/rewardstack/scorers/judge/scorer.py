"""Score samples with an LLM judge: one request for each combination of reference, vote and chunk of criteria."""

from __future__ import annotations

import asyncio
import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from rewardstack.cache.key import Key
from rewardstack.cause import Cause
from rewardstack.core.batching import BatchKey
from rewardstack.core.cost import estimate_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.fields import field_error
from rewardstack.core.steps import Step, Trace
from rewardstack.core.wire import Record
from rewardstack.errors import BudgetError, RejectedError, RequestError, ServiceError, SettingsError
from rewardstack.pipeline.scorer import Context
from rewardstack.score import Item, OnError, Score, Usage
from rewardstack.scorers.budget import Meter, NewMeter
from rewardstack.scorers.destination import Destination, FindPool, Servers
from rewardstack.scorers.judge.api import Api, api_path
from rewardstack.scorers.judge.calls import Calls, NoLogprobsError, gather_all
from rewardstack.scorers.judge.conversation import ShownParts
from rewardstack.scorers.judge.cost import count_usage, estimate
from rewardstack.scorers.judge.explanation import effective_options, explain_exchange
from rewardstack.scorers.judge.models import Model, Models
from rewardstack.scorers.judge.named import JudgeConfig
from rewardstack.scorers.judge.options import REQUEST_FIELDS, Options, portable_extra, read_options
from rewardstack.scorers.judge.plan import Plan, cache_key, make_plan
from rewardstack.scorers.judge.rejected_fields import is_too_long
from rewardstack.scorers.judge.request import CHAT
from rewardstack.scorers.judge.verdict import Verdict
from rewardstack.scorers.rate import RateLimit, Reservation
from rewardstack.scorers.relay import Relayable
from rewardstack.settings import Settings
from rewardstack.transport import ray_actor
from rewardstack.transport.discovery import optional_wait
from rewardstack_verifier.transcript import TOOL

VARIABLE = "LLM_JUDGE_SERVER_URL"
SHORTER: Sequence[Mapping[str, int]] = (
    {TOOL: 8_000},
    {TOOL: 2_000},
    {TOOL: 2_000, "user": 8_000},
    {TOOL: 2_000, "user": 2_000},
)
"""Limits of turns, in characters by role, to try one after another if a prompt is too long."""
NO_ANSWER = "there is no answer"
"""Reason of the score 0 for a response that is empty or has only reasoning."""
MAX_LATENCIES = 4096
"""Maximum number of reply times to keep for the next report."""

Decide = Callable[[Sequence[Plan], Model, SharedDeadline], Awaitable[Sequence[Verdict]]]
"""Sends the requests of plans and returns the verdicts; see `Judge.score_requests`."""
ServerAndOptions = tuple[Destination, Options]
"""The servers and options of a sample. Samples for which both are equal share discovery and trial requests."""

log = logging.getLogger(__name__)


class Judge(Relayable[Plan]):
    """Scores with an LLM judge on one or several equivalent servers.

    Args:
        settings: the settings, with the judge's servers, key, model and timeout.
        find_pool: returns the pool of endpoints for URLs and a key.
        new_meter: creates meters for the usage of requests.
        named: the configuration of a judge that a routes file defines; None for the judge in the environment.
        rate: the judge's rate limit; None for no limit.

    Raises:
        SettingsError: a URL of the judge is invalid, or only some of the URLs end with an API version.
    """

    on_error: OnError = "zero"
    source = "llm_judge"

    def __init__(
        self,
        settings: Settings,
        find_pool: FindPool,
        new_meter: NewMeter,
        named: JudgeConfig | None = None,
        rate: RateLimit | None = None,
    ) -> None:
        variable = named.url_setting if named is not None else VARIABLE
        check_urls(settings, variable)
        self.timeout = settings.judge_timeout
        self._settings = settings
        self._named, self._rate = named, rate
        if named is not None:
            self.source = named.source
        self._servers = Servers(
            variable,
            settings.judge_urls,
            settings.judge_api_key,
            "start a judge with `make up`, then `export LLM_JUDGE_SERVER_URL=http://localhost:8000`",
            "LLM_JUDGE_HEADERS" if settings.judge_headers else "",
            named.key_setting if named is not None else "",
        )
        api = self._api = Api(find_pool, settings)
        self._models = Models(api)
        self._new_meter = new_meter
        self._reply_times: deque[float] = deque(maxlen=MAX_LATENCIES)
        self.calls = Calls(api, self._models, new_meter(self.source, bounded=False))

    def prepare(self, item: Item, destination: Destination | None = None) -> Plan | Score:
        """Return the plan of the item, or the score 0 if the response has no answer.

        Raises:
            RequestError: an option is invalid, or the template needs a reference and there is none.
            SettingsError: neither the sample nor the environment sets a judge.
        """
        own, item = self._own_options(item), self._with_fixed_options(item)
        destination = self._destination(item, destination)
        options = read_options(item.extra)  # before the check for an answer, so that an invalid option always raises
        if options.view == "last_reply" and not item.solution.strip():
            return Score(0.0, reason=NO_ANSWER, source=self.source)
        plan = self._plan(item, options, destination)._replace(own=own)
        return plan if plan.shown.candidate.strip() else Score(0.0, reason=NO_ANSWER, source=self.source)

    def plan(self, item: Item, destination: Destination | None) -> Plan:
        """Return the plan of the item even if the response has no answer; raise as `prepare` does."""
        own, item = self._own_options(item), self._with_fixed_options(item)
        destination = self._destination(item, destination)
        return self._plan(item, read_options(item.extra), destination)._replace(own=own)

    def _destination(self, item: Item, destination: Destination | None) -> Destination:
        destination = destination or self._servers.destination(item.extra)
        if destination.urls != self._servers.default.urls:
            try:
                api_path(destination.urls, CHAT)
            except SettingsError as error:
                raise field_error("server_url", str(error)) from error
        return destination

    def _plan(self, item: Item, options: Options, destination: Destination) -> Plan:
        named = self._named
        plan = make_plan(
            item,
            options,
            destination,
            allow_urls=named is not None and named.allow_image_urls,
            compares=named is not None and named.comparison is not None,
        )
        if not plan.options.clip_negative and not (named is not None and named.may_be_negative):
            why = "only a named judge can give values below 0; set clip_negative in judges.NAME.options"
            raise field_error("clip_negative", why)
        return plan

    async def keys(self, samples: Sequence[Plan], context: Context) -> list[Key | None]:
        """Return a cache key for each sample; None if the model or the fields that the judge accepts are unknown."""
        models = await self._find_models(samples, context.deadline)
        return [self._key(plan, models[_server_and_options(plan)]) for plan in samples]

    async def _find_models(
        self, plans: Sequence[Plan], deadline: SharedDeadline
    ) -> dict[ServerAndOptions, Model | None]:
        """Discover the judges of samples; return the model for each pair of servers and options.

        The model is None if the judge did not answer, or the fields that the judge accepts are unknown.
        """
        kinds = {_server_and_options(plan): plan for plan in plans}
        is_one = len({destination for destination, _ in kinds}) == 1
        wait = math.inf if is_one else optional_wait(deadline)  # a judge that is down does not delay the others
        preparations = (self._prepare_model(plan, deadline, wait) for plan in kinds.values())
        outcomes = await asyncio.gather(*preparations, return_exceptions=True)
        for one in outcomes:
            if not isinstance(one, (Model, ServiceError)):
                raise one
        models: dict[ServerAndOptions, Model | None] = {}
        for (kind, plan), one in zip(kinds.items(), outcomes, strict=True):
            model = self._model(plan)  # the trial request for other options may have changed the dialect
            models[kind] = model if isinstance(one, Model) and self.calls.is_accepted(plan, model) else None
        return models

    async def _prepare_model(self, plan: Plan, deadline: SharedDeadline, wait: float = math.inf) -> Model:
        """Return the judge's model after discovery and, if needed, a trial request.

        Args:
            plan: the plan of a sample.
            deadline: the caller's deadline.
            wait: maximum time to wait for discovery if no earlier answer is cached, in seconds.

        Raises:
            ServiceError: discovery failed.
        """
        await self._models.discover(plan.destination, deadline, wait)
        model = self._model(plan)
        if not self.calls.is_accepted(plan, model):
            await self.calls.send_trial(plan, model, deadline)
            model = self._model(plan)
        return model

    def score(self, samples: Sequence[Plan], context: Context) -> Coroutine[Any, Any, list[Score]]:
        """Return the score of the only sample in `samples`; `batch` sets the batch size to 1.

        Raises:
            RequestError: the sample needs token probabilities, which the configured judge does not return.
            BudgetError: the budget of the run is used up.
        """
        return self.score_requests(samples, self._verdict, context)

    async def score_requests(self, plans: Sequence[Plan], decide: Decide, context: Context) -> list[Score]:
        """Send requests and return the scores from their verdicts; the first score has the usage of all requests.

        Args:
            plans: the plan of each request.
            decide: sends the requests of plans, and returns the verdicts.
            context: deadline and trace of the samples.

        Returns:
            The scores in the order of the verdicts; after an error, a single score, usually without a value.

        Raises:
            RequestError, BudgetError: as `score` does.
        """
        meter = self._new_meter(self.source)
        reservation = await self._reserve(plans, context.deadline)
        if self._rate is not None and reservation is not None:
            meter.limit = partial(self._rate.admit_attempt, reservation, context.deadline)
        usage: Usage | None = None
        try:
            scores = await self._request_scores(plans, decide, meter, context)
        except BudgetError as error:
            error.usage = usage = meter.pop()
            raise
        finally:
            usage = usage or meter.pop()
            self._correct(reservation, usage or Usage())
        scores[0].usage = usage
        return scores

    async def _request_scores(
        self, plans: Sequence[Plan], decide: Decide, meter: Meter, context: Context
    ) -> list[Score]:
        """Return the scores as `score_requests` does, without their usage, which `meter` counts."""
        plan, started = plans[0], time.monotonic()
        model = self._model(plan)
        try:
            model = await self._prepare_model(plan, context.deadline)  # `keys` may not have been called recently
            verdicts = await self._decide(_with_meter(plans, meter), decide, model, context.deadline)
            scores = [*map(self._to_score, verdicts)]
        except RequestError as error:
            shown = error if self._named is None else self._named.rename_option(error)
            if isinstance(error, NoLogprobsError) and plan.destination == self._servers.default:
                raise shown from error
            scores = [shown.as_score(self.source)]
        except ServiceError as error:
            scores = [await self._failed_score(error, plan._replace(meter=meter), model, context.deadline)]
        finally:
            if context.trace is not None:
                context.trace.note("judge", {}, _exchanges(plan, context.trace))
        self._reply_times.append(time.monotonic() - started)
        for score in scores:
            score.latency_ms = (time.monotonic() - plan.created_at) * 1000
        return scores

    def describe(self, item: Item, sample: Plan) -> Record:
        """Return the judge's servers, the texts in the prompt, and the options with their origin."""
        extra, model = self._with_fixed_options(item).extra, self._settings.judge_model
        options = effective_options(sample.options, extra, model, self._named)
        shown = sample.shown
        texts = {"problem": shown.problem, "references": list(sample.references), "candidate": shown.candidate}
        further = {"criteria": [one.to_record() for one in sample.rubric]} if sample.rubric else {}
        return {"servers": list(sample.destination.urls), **texts, **further, "options": options}

    def batch(self, sample: Plan) -> BatchKey:
        """Return a batch key: one sample per batch; samples with the same problem are sent one after another.

        At most `batch_size` samples are in flight; by default, one per connection. With a rate limit, the default is no
        maximum, because samples that wait for the rate limit count as in flight, but do not time out.
        """
        destination, size = sample.destination, sample.options.batch_size
        width = size or (math.inf if self._rate else len(destination.urls) * self._settings.max_connections)
        return _batch_key(destination, size, width, sample.shown.problem)

    def portable(self, item: Item, sample: Plan) -> Item:
        """Return the item to send to a reward server; `extra_info` has the template's text in place of a file path."""
        extra = portable_extra(self._with_fixed_options(item).extra, sample.shown, sample.rubric)
        if sample.options.hide_reasoning and not sample.shown.trace:
            return replace(item, extra=extra)
        return replace(item, extra=extra, solution=sample.shown.last_reply, messages=None)

    async def quote(self, samples: Sequence[Plan], context: Context) -> Usage:
        """Return the maximum usage of samples; prompts are counted by the judge's `/tokenize`, or else estimated."""
        await self._find_models(samples, context.deadline)  # without an answer, `count_usage` estimates
        plans = [(plan, self._model(plan)) for plan in samples]
        return Usage.total(await count_usage(plans, self._api, context.deadline))

    def estimate(self, samples: Sequence[Plan]) -> Usage:
        """Return the estimated usage of samples; sends no request."""
        return Usage.total(estimate(plan, self._model(plan)) for plan in samples)

    def report(self, scores: Sequence[Score], seconds: float) -> None:
        """Log a summary of a batch."""
        latencies = [score.latency_ms for score in scores if score.latency_ms and not score.cached] or [0.0]
        median_reply_time = 1000 * statistics.median(self._reply_times or [0.0])
        self._reply_times.clear()
        log.info(
            "%s: %d samples in %.2f s, %.1f a second; latency median %.0f ms, longest %.0f ms "
            "(median %.0f ms without the client's queue); "
            "%d cached, %d failed, %d of them without a readable verdict, %d unscored; %s",
            self.source,
            len(scores),
            seconds,
            len(scores) / max(seconds, 1e-6),
            statistics.median(latencies),
            max(latencies),
            median_reply_time,
            sum(score.cached for score in scores),
            sum(score.status == "failed" for score in scores),
            sum(score.cause in UNREADABLE_CAUSES for score in scores),
            sum(score.status == "unscored" for score in scores),
            Usage.total(score.usage for score in scores).summary,
        )

    def _with_fixed_options(self, item: Item) -> Item:
        """Return the item with the options that the routes file sets for a named judge."""
        return item if self._named is None else replace(item, extra=self._named.extra(item.extra))

    def _own_options(self, item: Item) -> tuple[str, ...]:
        """Return the options of `REQUEST_FIELDS` that the item sets, and the routes file does not."""
        fixed = () if self._named is None else self._named.fixed_options
        return tuple(one for one in REQUEST_FIELDS if item.extra.get(one) is not None and one not in fixed)

    def _key(self, plan: Plan, model: Model | None) -> Key | None:
        if model is None:
            return None
        name = self._named.name if self._named is not None else ""
        return cache_key(plan, model, self._settings.judge_revision, self._settings.run_id, name)

    def _model(self, plan: Plan) -> Model:
        options = plan.options
        return self._models.choose(options.model or self._settings.judge_model, plan.destination, options.omit)

    def _to_score(self, verdict: Verdict) -> Score:
        score = Score(verdict.value, "ok", verdict.note, self.source, label_mass=verdict.label_mass)
        score.agreement, score.parts = verdict.agreement, verdict.parts
        return score

    async def _reserve(self, plans: Sequence[Plan], deadline: SharedDeadline) -> Reservation | None:
        """Wait until the judge's rate limit admits the requests, and return the reservation; None without a limit."""
        if self._rate is None:
            return None
        cost = self.estimate(plans)
        return await self._rate.admit(cost.requests, cost.prompt_tokens + cost.completion_tokens, deadline)

    def _correct(self, reservation: Reservation | None, usage: Usage) -> None:
        """Replace the estimate in the rate limit with the actual usage."""
        if self._rate is not None and reservation is not None:
            known = None if usage.uncounted else usage.prompt_tokens + usage.completion_tokens
            self._rate.correct(reservation, known)

    async def _verdict(self, plans: Sequence[Plan], model: Model, deadline: SharedDeadline) -> list[Verdict]:
        """Return a list with one verdict: the best one over the references."""
        [plan] = plans
        request = partial(self.calls.verdict, plan, model, deadline=deadline)
        if len(plan.references) == 1:
            return [await request(plan.references[0])]
        return [max(await gather_all(map(request, plan.references)), key=lambda one: one.value)]

    async def _decide(
        self, plans: Sequence[Plan], decide: Decide, model: Model, deadline: SharedDeadline
    ) -> Sequence[Verdict]:
        """Return the verdicts; if a prompt is too long, shorten turns that the policy did not write (`SHORTER`).

        The note of a verdict says what was shortened.

        Raises:
            RejectedError: the prompt is too long however short these turns are, or is rejected for another reason.
        """
        try:
            return await decide(plans, model, deadline)
        except RejectedError as error:
            [plan, *others] = plans
            if others or plan.compared or not _is_too_long(error, plan):
                raise
            too_long = error
        tried = plan.shown
        for limits in SHORTER:
            shown = plan.shown.shorten(limits)
            if shown == tried:
                continue
            tried = shown
            try:
                verdicts = await decide([plan._replace(shown=shown)], model, deadline)
            except RejectedError as error:
                if not _is_too_long(error, plan):
                    raise
                continue
            return [_add_note(verdict, _describe_shortened(plan.shown, shown)) for verdict in verdicts]
        raise too_long

    async def _failed_score(self, error: ServiceError, plan: Plan, model: Model, deadline: SharedDeadline) -> Score:
        if isinstance(error, RejectedError):
            if _is_too_long(error, plan):
                return await self._too_long(error, plan, model, deadline)
            error = self._servers.with_key_hint(error, plan.destination)
            if error.status == 404 and (served := ", ".join(self._models.served_models(plan.destination))):
                where = "LLM_JUDGE_MODEL or model_name" if self._named is None else self._named.model_setting
                return Score.failed(f"{error}; set {where} to one of: {served}", self.source, error.cause)
        return Score.failed(f"{error}{_image_hint(error, plan)}", self.source, error.cause)

    async def _too_long(self, error: RejectedError, plan: Plan, model: Model, deadline: SharedDeadline) -> Score:
        """Return the score for a prompt that is too long: 0 if the policy's words alone are too long, else failed.

        The policy's words must also be longer than the rest of that prompt and the longest reply together, so that a
        policy is not blamed if the judge's context is too short for any sample.

        If the judge compares candidates, the samples always fail.
        """
        if plan.compared:
            remedy = "raise the judge's MAX_MODEL_LEN or shorten the responses" + (
                ", or compare fewer at a time (compare = 'pairwise', or smaller groups)" if plan.compared > 2 else ""
            )
            return Score.failed(f"{error}; {remedy}", self.source, Cause.CONTEXT_LENGTH)
        alone = plan._replace(shown=plan.shown.policy_words, references=("",))
        rest = estimate(alone._replace(shown=ShownParts("", "")), model)
        tokens = (rest.prompt_tokens + rest.completion_tokens) / rest.requests
        is_longer = estimate_tokens(alone.shown.candidate) > tokens
        if is_longer and await self.calls.is_too_long(alone, model, deadline):
            return Score(0.0, reason="the candidate is longer than the judge's context", source=self.source)
        why = f"{error}; raise the judge's MAX_MODEL_LEN, or lower max_new_tokens"
        return Score.failed(why, self.source, Cause.CONTEXT_LENGTH)


UNREADABLE_CAUSES = (Cause.NO_VERDICT, Cause.JUDGE_REFUSED, Cause.JUDGE_TRUNCATED)
"""The causes of samples whose replies had no readable verdict."""


def _is_too_long(error: RejectedError, plan: Plan) -> bool:
    return is_too_long(error, plan.texts(plan.user_message(plan.references[0])))


def _add_note(verdict: Verdict, note: str) -> Verdict:
    return verdict._replace(note="; ".join(filter(None, (verdict.note, note))))


def _describe_shortened(before: ShownParts, after: ShownParts) -> str:
    pairs = zip((*before.task, *before.trace), (*after.task, *after.trace), strict=True)
    roles = [old.role for old, new in pairs if old != new]
    names = {TOOL: "outputs of tools", "user": "turns of users"}
    counts = [f"{roles.count(role)} {name}" for role, name in names.items() if role in roles]
    return f"shortened to fit the judge's context: {' and '.join(counts)}"


def _with_meter(plans: Sequence[Plan], meter: Meter) -> list[Plan]:
    return [plan._replace(meter=meter) for plan in plans]


def _exchanges(plan: Plan, trace: Trace) -> list[Step]:
    return [explain_exchange(plan, one) for one in trace.take()]


def _image_hint(error: ServiceError, plan: Plan) -> str:
    """Return a remedy to append to an error if the judge may not support the sample's images; else an empty text."""
    refused = isinstance(error, RejectedError) and error.status in (400, 415, 422)
    if not plan.shown.images or not (refused or "image" in str(error).lower()):
        return ""
    count = len(plan.shown.images)
    shown = f"{count} images" if count > 1 else "an image"
    return f"; the sample has {shown}: use a judge that supports images, or set images = false"


@lru_cache(maxsize=1024)
def _batch_key(destination: Destination, size: int | None, width: float, problem: str) -> BatchKey:
    return BatchKey(1, (destination, size), width, problem)


def _server_and_options(plan: Plan) -> ServerAndOptions:
    return plan.destination, plan.options


def check_urls(settings: Settings, variable: str = VARIABLE) -> None:
    """Check that a judge's URLs are valid, and that either all or none of them end with an API version.

    Args:
        settings: the settings, with the URLs.
        variable: name of the variable or field that sets the URLs, for the error.

    Raises:
        SettingsError: the check fails.
    """
    for url in settings.judge_urls:
        ray_actor.check(url)
    try:
        api_path(settings.judge_urls, CHAT)
    except SettingsError as error:
        raise SettingsError(f"{variable}: {error}", variable) from error
