"""Usage of verdicts before they are requested: the judge's `/tokenize` counts prompts, else their length is used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.core.cost import estimate_tokens
from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import ServiceError
from rewardstack.score import Usage
from rewardstack.scorers.judge.api import Api
from rewardstack.scorers.judge.images import TOKENS
from rewardstack.scorers.judge.labels import TOKENIZE
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import content_text
from rewardstack.scorers.judge.request import frame, most_tokens
from rewardstack.transport.endpoint import Message

SLICE = 64
"""Number of samples whose prompts are counted concurrently."""
CHAT_FIELDS = ("model", "messages", "chat_template_kwargs")
"""Fields of a request that determine its prompt."""


def estimate(plan: Plan, model: Model) -> Usage:
    """Return the estimated usage of one sample's verdict, from the length of its prompts."""
    requests = _requests(plan)
    texts = [text for sent in _sent(plan, model) for text in _texts(sent)]
    images = TOKENS * len(plan.shown.images) * len(plan.references) * len(plan.chunks)
    prompt = (sum(map(estimate_tokens, texts)) + images) * _votes(plan)
    return Usage(requests, prompt, _most_completion(plan, model), requests)


async def counted(asked: Sequence[tuple[Plan, Model]], api: Api, deadline: SharedDeadline) -> list[Usage]:
    """Return the usage of each sample's verdict; the judge counts the prompts if it can, else they are estimated.

    Args:
        asked: plan and model of each sample.
        api: sends the requests.
        deadline: the caller's deadline.
    """
    found: list[Usage] = []
    for start in range(0, len(asked), SLICE):
        some = asked[start : start + SLICE]
        found += await asyncio.gather(*(_counted(plan, model, api, deadline) for plan, model in some))
        if found[-1].uncounted:  # the judge has no `/tokenize`, so do not ask for the remaining samples
            return found + [estimate(plan, model) for plan, model in asked[start + SLICE :]]
    return found


async def _counted(plan: Plan, model: Model, api: Api, deadline: SharedDeadline) -> Usage:
    requests, prompt = _requests(plan), 0
    try:
        for sent in _sent(plan, model):
            body = json.dumps({name: sent[name] for name in CHAT_FIELDS if name in sent}).encode()
            message = Message("POST", TOKENIZE, body, is_optional=True)
            reply = await api.ask(plan.destination, message, deadline)
            prompt += int(json.loads(reply)["count"])
    except (ServiceError, ValueError, KeyError, TypeError):
        return estimate(plan, model)
    return Usage(requests, prompt * _votes(plan), _most_completion(plan, model))


def _votes(plan: Plan) -> int:
    return 1 if plan.options.labels else plan.options.num_samples


def _requests(plan: Plan) -> int:
    return len(plan.references) * len(plan.chunks) * _votes(plan)


def _most_completion(plan: Plan, model: Model) -> int:
    most = [most_tokens(plan.options, model.dialect, plan.answers(chunk)) for chunk in plan.chunks]
    return sum(most) * len(plan.references) * _votes(plan)


def _sent(plan: Plan, model: Model) -> list[dict[str, Any]]:
    """Return the bodies of the requests for a sample; requests that differ only in the vote are given once."""
    options, dialect = plan.options, model.dialect
    return [
        json.loads(
            frame(options, model.name, dialect=dialect, answers=plan.answers(chunk)).body(
                plan.user(reference, chunk), plan.shown.images
            )
        )
        for reference in plan.references
        for chunk in plan.chunks
    ]


def _texts(sent: Mapping[str, Any]) -> list[str]:
    return [content_text(message["content"]) for message in sent["messages"]]
