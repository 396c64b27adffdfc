"""slime's protocol for `/get_reward` (`slime/rollout/rm_hub/__init__.py`, `--rm-type remote_rm`).

The body is `{"prompt": a text or messages, "response", "label"}`. The reply is the reward as a bare number.
"""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify

from rewardstack.cause import Cause
from rewardstack.score import Score
from rewardstack_rules.http.errors import ApiError, unavailable
from rewardstack_rules.http.protocols.body import require_fields
from rewardstack_rules.http.protocols.scoring import all_failed, get_source, make_sample, score_samples

NAMES = {"ground_truth": "label", "solution_str": "response"}
"""slime's names for fields of a sample, by rewardstack's names."""


def answer(body: dict[str, Any]) -> Response:
    """Reply with the reward of one sample, or with 503 if it is `failed`, which a bare number cannot express.

    Raises:
        ApiError: 400; the prompt is missing, or the sample cannot be scored, for example without a label.
    """
    require_fields(body, ("prompt",))
    sample = make_sample(get_source(body), body["prompt"], body["response"], body.get("label"))
    [score] = score_samples([sample])
    if all_failed([score]):
        return unavailable(f"the sample was not scored: {score.reason}", score.cause)
    if score.value is None or score.status == "unscored":
        raise _refusal(score)
    return jsonify(score.value)


def _refusal(score: Score) -> ApiError:
    """Return the error for a sample that cannot be scored, with slime's names for its fields."""
    if score.cause is Cause.NO_REFERENCE:
        return ApiError(400, f"label: {score.reason}", "label")
    name = NAMES.get(score.field, score.field)
    return ApiError(400, score.reason.replace(f"{score.field}: ", f"{name}: ", 1), name or "body")
