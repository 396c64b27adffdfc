"""What verdicts would cost: prompts counted by the judge's own `/tokenize`, else estimated from their length."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from rewardstack.core.cost import estimated_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import ServiceError
from rewardstack.score import Usage
from rewardstack.scorers.judge.api import Api
from rewardstack.scorers.judge.labels import TOKENIZE
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.request import frame, most_tokens
from rewardstack.transport.endpoint import Message

SLICE = 64
"""Prompts that are counted at a time."""
CHAT_FIELDS = ("model", "messages", "chat_template_kwargs")
"""Fields of a request by which its prompt is made."""


def estimate(plan: Plan, model: Model) -> Usage:
    """Return what a verdict on one sample would cost, its prompts by their length."""
    requests = _requests(plan)
    texts = [text for reference in plan.references for text in _texts(plan, model, reference)]
    prompt = sum(map(estimated_tokens, texts)) * (requests // len(plan.references))
    return Usage(requests, prompt, requests * most_tokens(plan.options, model.dialect), requests)


async def counted(asked: Sequence[tuple[Plan, Model]], api: Api, deadline: SharedDeadline) -> list[Usage]:
    """Return what each verdict would cost; prompts are counted by the judge if it does that, else estimated."""
    found: list[Usage] = []
    for start in range(0, len(asked), SLICE):
        some = asked[start : start + SLICE]
        found += await asyncio.gather(*(_counted(plan, model, api, deadline) for plan, model in some))
        if found[-1].uncounted:  # such a judge is not asked for each of many
            return found + [estimate(plan, model) for plan, model in asked[start + SLICE :]]
    return found


async def _counted(plan: Plan, model: Model, api: Api, deadline: SharedDeadline) -> Usage:
    requests, prompt = _requests(plan), 0
    try:
        for reference in plan.references:
            sent = _request(plan, model, reference)
            body = json.dumps({name: sent[name] for name in CHAT_FIELDS if name in sent}).encode()
            message = Message("POST", TOKENIZE, body, is_optional=True)
            reply = await api.ask(plan.destination, message, deadline)
            prompt += int(json.loads(reply)["count"])
    except (ServiceError, ValueError, KeyError, TypeError):
        return estimate(plan, model)
    votes = requests // len(plan.references)
    return Usage(requests, prompt * votes, requests * most_tokens(plan.options, model.dialect))


def _requests(plan: Plan) -> int:
    votes = 1 if plan.options.labels else plan.options.num_samples
    return len(plan.references) * votes


def _request(plan: Plan, model: Model, reference: str) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(
        frame(plan.options, model.name, dialect=model.dialect).body(plan.user(reference))
    )
    return request


def _texts(plan: Plan, model: Model, reference: str) -> list[str]:
    return [message["content"] for message in _request(plan, model, reference)["messages"]]
