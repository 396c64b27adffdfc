"""The judge as the flow sees it: every sample is a request of its own (one a reference and vote), all of them at once.

How many are in flight is the transport's affair. Samples of one problem are sent one after another, so that the
judge's prefix cache still has what they share.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Coroutine, Hashable, Sequence
from dataclasses import replace
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.keys import Key
from rewardstack.errors import ConfigError, RejectedError, RequestError, ServiceError, SettingsError
from rewardstack.score import Item, OnError, Score
from rewardstack.scorers.destination import Destination, FindService, Servers
from rewardstack.scorers.judge.calls import Calls, Verdict, together
from rewardstack.scorers.judge.models import Model, Models, RefusedKeyError
from rewardstack.scorers.judge.options import portable_extra, problem_of, read_options
from rewardstack.scorers.judge.plan import Plan, key_of, make_plan
from rewardstack.scorers.judge.verdict import UNREADABLE
from rewardstack.settings import Settings

TOO_LONG = ("maximum context length", "max_model_len", "maximum model length")
"""How vLLM says that a prompt does not fit."""

log = logging.getLogger(__name__)


class Judge:
    """An LLM judge behind one or several equivalent servers.

    Args:
        settings: the servers, their key, the model, how long to wait.
        find_service: opens connections.
    """

    on_error: OnError = "zero"
    source = "llm_judge"
    batch_size = 1

    def __init__(self, settings: Settings, find_service: FindService) -> None:
        self.timeout = settings.judge_timeout
        self._settings = settings
        self._servers = Servers(
            "LLM_JUDGE_SERVER_URL",
            settings.judge_urls,
            settings.judge_api_key,
            "start a judge with `make up` and `export LLM_JUDGE_SERVER_URL=http://localhost:8000`",
        )
        self._default = self._servers.destination({}) if settings.judge_urls else None
        self._models = Models(find_service)
        self._calls = Calls(find_service)
        self._fault: BaseException | None = None

    async def keys(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Key | None]:
        """A key for each item, None where it cannot be judged or the judge does not say what it serves.

        Raises:
            SettingsError: there is no judge to ask, or it does not take the key.
        """
        found = [self._destination(item) for item in items]
        asked = [one for one, item in zip(found, items, strict=True) if _has_answer(item)]
        try:
            await self._models.meet({one for one in asked if not isinstance(one, Score)}, deadline)
        except RefusedKeyError as error:
            self._refuse_key(error, error.destination)
        return [self._key(item, one) for item, one in zip(items, found, strict=True)]

    async def score(self, items: Sequence[Item], deadline: SharedDeadline) -> list[Score]:
        """One score for each item, in order.

        Raises:
            SettingsError: there is no judge to ask, or it does not take the key.
        """
        if len(items) == 1:
            return [await self._score(items[0], deadline)]
        return await together(self._score(item, deadline) for item in items)

    def lane(self, item: Item) -> tuple[Hashable, int]:
        """The item's servers, and how many such items they have at a time; `batch_size` makes it fewer."""
        destination = self._destination(item)
        if isinstance(destination, Score):
            return None, 1
        size = None if item.extra.get("batch_size") is None else self._batch_size(item)
        return (destination, size), size or len(destination.urls) * self._settings.max_connections

    def order(self, items: Sequence[Item]) -> list[int]:
        """The positions of the items in the order in which they are best sent: those of one problem together."""
        groups: dict[Hashable, list[int]] = {}
        for at, item in enumerate(items):
            problem = item.extra.get("problem")
            groups.setdefault(problem if isinstance(problem, str) else None, []).append(at)
        return [at for members in groups.values() for at in members]

    def portable(self, item: Item) -> Item | Score:
        """The item with what the judge reads of its `extra_info`, for a reward server that asks the judge in its place.

        A template's file is read here: the server does not know the file.
        """
        try:
            return replace(item, extra=portable_extra(item.extra))
        except RequestError as error:
            return Score.unscored(str(error), self.source)

    def report(self, scores: Sequence[Score], seconds: float) -> None:
        """One line in the log on a batch; a traceback with it where an exception spoilt a reply.

        Args:
            scores: what became of its samples, with the time that the judge took in `latency_ms`.
            seconds: that the batch took.
        """
        taken = [score.latency_ms for score in scores if score.latency_ms and not score.cached] or [0.0]
        log.info(
            "%s: %d samples in %.2f s, %.1f a second; latency median %.0f ms, longest %.0f ms; "
            "%d cached, %d failed, %d of them without a readable verdict",
            self.source,
            len(scores),
            seconds,
            len(scores) / max(seconds, 1e-6),
            statistics.median(taken),
            max(taken),
            sum(score.cached for score in scores),
            sum(score.status == "failed" for score in scores),
            sum(score.reason.startswith(UNREADABLE) for score in scores),
        )
        fault, self._fault = self._fault, None
        if fault is not None:
            log.warning("%s: %s", self.source, fault, exc_info=fault)

    def _destination(self, item: Item) -> Destination | Score:
        """Who is asked for the item; its score where it names a server wrongly."""
        extra = item.extra
        if self._default is not None and "server_url" not in extra and "api_key" not in extra:
            return self._default
        try:
            return self._servers.destination(extra)
        except ConfigError as error:
            return self._complaint(error)

    def _batch_size(self, item: Item) -> int | None:
        try:
            return read_options(item.extra).batch_size
        except RequestError:
            return None  # what is wrong with it is said when its turn comes

    def _plan(self, item: Item, destination: Destination) -> Plan | Score:
        """What is asked for the item, or its score where nothing needs to be asked."""
        if not _has_answer(item):
            return Score(0.0, reason="there is no answer", source=self.source)
        try:
            return make_plan(item, destination)
        except ConfigError as error:
            return self._complaint(error)

    def _complaint(self, error: ConfigError) -> Score:
        """What is wrong with one item; what is wrong with the environment is raised."""
        if error.field == self._servers.variable:
            raise error
        return Score.unscored(str(error), self.source)

    def _key(self, item: Item, destination: Destination | Score) -> Key | None:
        if isinstance(destination, Score) or not self._models.is_known(destination):
            return None
        plan = self._plan(item, destination)
        if isinstance(plan, Score):
            return None
        return key_of(plan, self._model(plan), self._settings.judge_revision, self._settings.run_id)

    def _model(self, plan: Plan) -> Model:
        return self._models.choose(plan.options.model or self._settings.judge_model, plan.destination)

    async def _score(self, item: Item, deadline: SharedDeadline) -> Score:
        started, destination = time.monotonic(), self._destination(item)
        if isinstance(destination, Score):
            return destination
        try:
            plan = self._plan(item, destination)
            if isinstance(plan, Score):
                return plan
            value, note, label_mass = await self._verdict(plan, deadline)
            score = Score(value, "ok", note, self.source, label_mass=label_mass)
        except RequestError as error:
            return self._complaint(error)
        except ServiceError as error:
            score = self._failure(error, item, destination)
        score.latency_ms = (time.monotonic() - started) * 1000
        return score

    def _verdict(self, plan: Plan, deadline: SharedDeadline) -> Coroutine[Any, Any, Verdict]:
        if not self._models.is_known(plan.destination):
            return self._first_verdict(plan, deadline)
        if len(plan.references) > 1:
            return self._best_verdict(plan, deadline)
        return self._calls.verdict(plan, self._model(plan), plan.references[0], deadline)

    async def _first_verdict(self, plan: Plan, deadline: SharedDeadline) -> Verdict:
        await self._models.refresh(plan.destination, deadline)
        return await self._verdict(plan, deadline)

    async def _best_verdict(self, plan: Plan, deadline: SharedDeadline) -> Verdict:
        """The best verdict over the references."""
        model = self._model(plan)
        asked = [self._calls.verdict(plan, model, reference, deadline) for reference in plan.references]
        return max(await together(asked), key=lambda verdict: verdict.value)

    def _failure(self, error: ServiceError, item: Item, destination: Destination) -> Score:
        if isinstance(error, RejectedError):
            self._refuse_key(error, destination)
            if any(words in str(error) for words in TOO_LONG):
                return self._too_long(error, item)
            if error.status == 404 and (served := ", ".join(self._models.served(destination))):
                return Score.failed(f"{error}; set LLM_JUDGE_MODEL or model_name to one of: {served}", self.source)
        if error.__cause__ is not None:
            self._fault = error
        return Score.failed(str(error), self.source)

    def _too_long(self, error: RejectedError, item: Item) -> Score:
        """A prompt beyond the judge's context: no answer to speak of where the candidate is most of it."""
        rest = len(problem_of(item.extra)) + max(map(len, item.references), default=0)
        if len(item.solution) > rest + read_options(item.extra).template.size:
            return Score(0.0, reason="the candidate is longer than the judge's context", source=self.source)
        return Score.failed(f"{error}; raise the judge's MAX_MODEL_LEN, or lower max_new_tokens", self.source)

    def _refuse_key(self, error: RejectedError, destination: Destination) -> None:
        """An environment that does not fit concerns every sample, unlike a key that a sample brings."""
        if error.status in (401, 403) and destination == self._default:
            raise SettingsError(
                f"{error}; set LLM_JUDGE_SERVER_API_KEY to the judge's key", "LLM_JUDGE_SERVER_API_KEY"
            ) from error


def _has_answer(item: Item) -> bool:
    """Whether there is anything to judge."""
    return bool(item.solution.strip())
