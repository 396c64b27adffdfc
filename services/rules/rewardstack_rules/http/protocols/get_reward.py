"""`POST /get_reward`: rewards for three trainers. Each trainer is recognized by a key that only its bodies have.

| key | trainer |
| --- | --- |
| `responses` | Align-Anything |
| `query` | OpenRLHF |
| `response` | slime |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response

from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols import align_anything, openrlhf, slime
from rewardstack_rules.http.protocols.body import list_fields, read_object, refuse_misspelled

blueprint = Blueprint("get_reward", __name__)

ANSWERS: dict[str, Callable[[dict[str, Any]], Response]] = {
    "responses": align_anything.answer,
    "query": openrlhf.answer,
    "response": slime.answer,
}
FIELDS: dict[str, tuple[str, ...]] = {
    "responses": ("prompts", "responses", "golden_responses", "reward_type"),
    "query": ("query", "prompts", "labels", "reward_type"),
    "response": ("prompt", "response", "label", "reward_type"),
}
"""The fields of each trainer's bodies, by the trainer's key."""
FORMS = (
    "prompts and responses (Align-Anything); query, prompts and labels (OpenRLHF); "
    "or prompt, response and label (slime)"
)


@blueprint.post("/get_reward")
def get_reward() -> Response:
    """Reply with rewards, or with 503 if every sample is `failed`, so that the trainer tries again."""
    body = read_object()
    keys = [key for key in ANSWERS if key in body]
    if len(keys) > 1:
        raise ApiError(400, f"{keys[0]} and {keys[1]} belong to different trainers; send {FORMS}", keys[1])
    refuse_misspelled(body, FIELDS[keys[0]] if keys else [name for names in FIELDS.values() for name in names])
    if not keys:
        # The most common mistake is to send only `prompts`, in Align-Anything's format.
        field = "responses" if "prompts" in body else "body"
        raise ApiError(400, f"{field} has nothing to score; {list_fields(body)}; send {FORMS}", field)
    return ANSWERS[keys[0]](body)
