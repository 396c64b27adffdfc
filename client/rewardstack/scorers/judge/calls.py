"""One verdict from a judge: the requests it takes, and what its refusals mean."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import RejectedError, ReplyError
from rewardstack.scorers.destination import Destination, FindService
from rewardstack.scorers.judge.labels import LabelTokens
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import read_label_verdict, read_text_verdict, was_aborted
from rewardstack.scorers.judge.request import CHAT, frame
from rewardstack.scorers.judge.verdict import Verdict
from rewardstack.scorers.judge.votes import combine

ATTEMPTS = 20
"""At a reply from a judge that is not being stopped: ten seconds, for a gateway sends there until the judge is gone.

Within each the `EndpointPool` tries a 500 again at once, as of any service, `max_retries` times and while its budget
lasts. So one verdict takes 80 requests at most by default, and many together 20 each and a tenth more.
"""
PAUSE = 0.5
"""Seconds between them, in which that judge goes."""
STOPPING = "after shutdown"
"""What a vLLM that is being stopped says with its 500, to every request that a gateway still sends it."""
BUDGET_FIELD = "thinking_token_budget"

log = logging.getLogger(__name__)
T = TypeVar("T")


class Calls:
    """Asks judges.

    Args:
        find_service: opens connections.
    """

    def __init__(self, find_service: FindService) -> None:
        self._find = find_service
        self._labels = LabelTokens()
        self._without_budget: set[Destination] = set()

    def verdict(
        self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline
    ) -> Coroutine[Any, Any, Verdict]:
        """The judge's verdict on one prompt, of several votes where the options say so; to be awaited.

        Args:
            plan: who is asked, and how.
            model: that judges.
            reference: one of the plan's.
            deadline: of all who wait.

        Raises:
            UnreadableError: a reply held none.
            RequestError: the options' labels are not such for this model.
            ServiceError: the judge did not answer.
        """
        if plan.options.labels:
            return self._by_labels(plan, model, reference, deadline)
        if plan.options.num_samples > 1:
            return self._by_votes(plan, model, reference, deadline)
        return self._in_words(plan, model, reference, 0, deadline)

    async def _by_votes(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        ask = [self._in_words(plan, model, reference, vote, deadline) for vote in range(plan.options.num_samples)]
        outcomes = await asyncio.gather(*ask, return_exceptions=True)
        values = [one.value for one in outcomes if isinstance(one, Verdict)]
        if 2 * len(values) <= len(outcomes):
            raise next(one for one in outcomes if isinstance(one, BaseException))
        note = "" if len(values) == len(outcomes) else f"{len(values)} of {len(outcomes)} votes"
        return Verdict(combine(values, plan.options.aggregate), note)

    async def _in_words(self, plan: Plan, model: Model, reference: str, vote: int, deadline: SharedDeadline) -> Verdict:
        options = plan.options
        budget = options.enable_thinking and plan.destination not in self._without_budget
        user = plan.user(reference)
        body = frame(options, model.name, vote, budget=budget).body(user)
        try:
            reply = await self._completion(plan, body, deadline)
        except RejectedError as error:
            if not budget or BUDGET_FIELD not in str(error):
                raise
            self._forget_budget(plan.destination)
            body = frame(options, model.name, vote, budget=False).body(user)
            reply = await self._completion(plan, body, deadline)
        return Verdict(read_text_verdict(reply, options.template.top, thinking=options.enable_thinking))

    async def _completion(self, plan: Plan, body: bytes, deadline: SharedDeadline) -> bytes:
        """A whole reply; what a judge that is being stopped refuses or breaks off is asked for again.

        Raises:
            ServiceError: there is none.
        """
        service = self._find(*plan.destination)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                reply = await service.post(CHAT, body, deadline, headers=plan.headers, hedged=True)
            except ReplyError as error:
                if STOPPING not in str(error) or attempt == ATTEMPTS:
                    raise
            else:
                if not was_aborted(reply):
                    return reply
            await asyncio.sleep(PAUSE)
        raise ReplyError(f"the judge broke off its reply, {ATTEMPTS} times")

    def _forget_budget(self, destination: Destination) -> None:
        if destination not in self._without_budget:
            self._without_budget.add(destination)
            log.warning(
                "the judge takes no %s, so only max_tokens bounds its reasoning; start it with --reasoning-parser",
                BUDGET_FIELD,
            )

    async def _by_labels(self, plan: Plan, model: Model, reference: str, deadline: SharedDeadline) -> Verdict:
        options, service = plan.options, self._find(*plan.destination)
        names, values = zip(*options.labels, strict=True)
        ids = await self._labels.find(names, model, plan.destination, service, deadline)
        body = frame(options, model.name, label_ids=ids).body(plan.user(reference))
        reply = await self._completion(plan, body, deadline)
        value, mass = read_label_verdict(reply, ids, values, options.label_mass_floor)
        return Verdict(value, label_mass=mass)


async def together(work: Iterable[Awaitable[T]]) -> list[T]:
    """The results of all, in order; where one fails, its error after all have ended."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for one in outcomes:
        if isinstance(one, BaseException):
            raise one
    return [one for one in outcomes if not isinstance(one, BaseException)]
