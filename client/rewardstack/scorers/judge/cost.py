"""Compute the maximum usage of verdicts before they are requested; retries are not included.

Prompt tokens are counted by the judge's `/tokenize`, or estimated from the length of the prompts.
"""

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
from rewardstack.scorers.judge.images import TOKENS_PER_IMAGE
from rewardstack.scorers.judge.labels import TOKENIZE
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import content_text
from rewardstack.scorers.judge.request import make_frame, max_reply_tokens
from rewardstack.transport.message import Message

SLICE = 64
"""Number of samples whose prompts are counted concurrently."""
CHAT_FIELDS = ("model", "messages", "chat_template_kwargs")
"""Fields of a request that determine its prompt."""


def estimate(plan: Plan, model: Model) -> Usage:
    """Return the maximum usage of one sample's verdict; prompt tokens are estimated from the length of its prompts."""
    requests = _request_count(plan)
    texts = [text for sent in _request_bodies(plan, model) for text in _message_texts(sent)]
    images = TOKENS_PER_IMAGE * len(plan.shown.images) * len(plan.references) * len(plan.chunks)
    prompt = (sum(map(estimate_tokens, texts)) + images) * _vote_count(plan)
    return Usage(requests, prompt, _max_completion(plan, model), requests)


async def count_usage(samples: Sequence[tuple[Plan, Model]], api: Api, deadline: SharedDeadline) -> list[Usage]:
    """Return the maximum usage of each sample's verdict; prompt tokens are estimated if the judge cannot count them.

    Args:
        samples: plan and model of each sample.
        api: sends the requests.
        deadline: the caller's deadline.
    """
    usages: list[Usage] = []
    for start in range(0, len(samples), SLICE):
        chunk_of_samples = samples[start : start + SLICE]
        usages += await asyncio.gather(*(_count_usage(plan, model, api, deadline) for plan, model in chunk_of_samples))
        if usages[-1].uncounted:  # the judge has no `/tokenize`, so estimate the remaining samples
            return usages + [estimate(plan, model) for plan, model in samples[start + SLICE :]]
    return usages


async def _count_usage(plan: Plan, model: Model, api: Api, deadline: SharedDeadline) -> Usage:
    requests, prompt = _request_count(plan), 0
    try:
        for sent in _request_bodies(plan, model):
            body = json.dumps({name: sent[name] for name in CHAT_FIELDS if name in sent}).encode()
            message = Message("POST", TOKENIZE, body, is_optional=True)
            reply = await api.ask(plan.destination, message, deadline)
            prompt += int(json.loads(reply)["count"])
    except (ServiceError, ValueError, KeyError, TypeError):
        return estimate(plan, model)
    return Usage(requests, prompt * _vote_count(plan), _max_completion(plan, model))


def _vote_count(plan: Plan) -> int:
    return 1 if plan.options.labels else plan.options.num_samples


def _request_count(plan: Plan) -> int:
    return len(plan.references) * len(plan.chunks) * _vote_count(plan)


def _max_completion(plan: Plan, model: Model) -> int:
    limits = [max_reply_tokens(plan.options, model.dialect, plan.valid_answers(chunk)) for chunk in plan.chunks]
    return sum(limits) * len(plan.references) * _vote_count(plan)


def _request_bodies(plan: Plan, model: Model) -> list[dict[str, Any]]:
    """Return the bodies of the requests for a sample, without repeating them for each vote."""
    options, dialect = plan.options, model.dialect
    return [
        json.loads(
            make_frame(options, model.name, dialect=dialect, answers=plan.valid_answers(chunk)).body(
                plan.user_message(reference, chunk), plan.shown.images
            )
        )
        for reference in plan.references
        for chunk in plan.chunks
    ]


def _message_texts(sent: Mapping[str, Any]) -> list[str]:
    return [content_text(message["content"]) for message in sent["messages"]]
