"""`POST /get_reward`: Align-Anything's protocol (`align_anything/models/remote_rm/reward_server.py`).

`{"prompts", "responses", "golden_responses"?}` to `{"rewards", "statuses"}`. Beside the original, golden responses in
the body are used, `reward_type` in the body or the query picks the reward function, and `statuses` tells a reward of
0.0 from a sample without a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Blueprint, Response, g, jsonify, request

from rewardstack.score import Request as Sample
from rewardstack.score import Score
from rewardstack_rules.context import Context, context
from rewardstack_rules.http_errors import ApiError, unavailable
from rewardstack_rules.protocols.body import json_type, read_limit, read_list, read_object

blueprint = Blueprint("get_reward", __name__)


@blueprint.post("/get_reward")
def get_reward() -> Response:
    """Rewards for a batch; 503 where the infrastructure failed every sample of it, so that callers try again."""
    body, here = read_object(), context()
    prompts, responses = read_list(body, "prompts"), read_list(body, "responses")
    golden = read_list(body, "golden_responses") if body.get("golden_responses") is not None else [None] * len(prompts)
    for name, values in (("responses", responses), ("golden_responses", golden)):
        if len(values) != len(prompts):
            raise ApiError(400, f"{name}: {len(values)} of them for {len(prompts)} prompts", name)
    source = here.service.source_of(_reward_type(body, here))
    samples = [_sample(here, source, *row) for row in zip(prompts, responses, golden, strict=True)]
    return _reply(here.service.score(samples, limit=read_limit(), tenant=g.tenant))


def _reward_type(body: dict[str, Any], here: Context) -> str:
    name = body.get("reward_type") or request.args.get("reward_type") or here.settings.reward_type
    if not isinstance(name, str):
        raise ApiError(400, f"reward_type must be a string, got {json_type(name)}", "reward_type")
    return name


def _sample(here: Context, source: str, prompt: Any, response: Any, golden: Any) -> Sample:
    if golden is None and isinstance(prompt, str):
        golden = here.golden.find(prompt)
    return Sample(source, response, golden, {"prompt": prompt})


def _reply(scores: Sequence[Score]) -> Response:
    rewards = [0.0 if score.value is None else score.value for score in scores]
    statuses = [score.status for score in scores]
    if scores and all(status == "failed" for status in statuses):
        return unavailable(f"no sample was scored: {scores[0].reason}", rewards=rewards, statuses=statuses)
    return jsonify(rewards=rewards, statuses=statuses)
