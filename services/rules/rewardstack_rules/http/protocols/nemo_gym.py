"""NeMo Gym's resources server (`nemo_gym/base_resources_server.py`): `/verify`, `/seed_session`, `/aggregate_metrics`.

The body of `/verify` is `{"responses_create_params", "response": an OpenAI Responses object, ...fields of the RL
environment}`. The reply is the body with an additional `reward`. For a `failed` sample, the reply has HTTP status 200,
a reward (0.0 if the sample has no value), and fields that make NeMo Gym's collector exclude the sample
(`nemo_gym/judge.py`, `failure_kinds.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.json_types import TOO_DEEP, is_deep
from rewardstack.core.messages import Chat, has_more_than_text, last_message, last_text, to_chat
from rewardstack.score import Request, Score
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols import nemo_gym_metrics
from rewardstack_rules.http.protocols.body import json_type, read_field, read_object, refuse_misspelled
from rewardstack_rules.http.protocols.scoring import (
    drop_server_fields,
    get_source,
    make_sample,
    reply_without_rewards,
    reward_value,
    score_samples,
)

blueprint = Blueprint("nemo_gym", __name__)

REFERENCE_FIELDS = ("expected_answer", "ground_truth", "answer", "label")
"""Fields of the body that may hold the reference. The first that is not null is used."""
NOT_EXTRA = ("responses_create_params", "response", "reward_type")
"""Fields of a body that are not passed to reward functions in `extra_info`."""
FAILURE_CLASS = "judge_failed"
REPLY_FIELDS = (
    "reward",
    "_ng_failure_class",
    "_ng_failure_judge_error",
    "mask_sample",
    "failure_kind",
    "failure_reason",
)
"""Fields that a reply adds to the body. They are removed from a request whose body is an earlier reply."""


@blueprint.post("/seed_session")
def seed_session() -> Response:
    """Reply with the caller's session id, if it sent one. Nothing else happens, because rules keep no state."""
    body = read_object()
    name = "resources_session_id"
    return jsonify({name: body[name]} if isinstance(body.get(name), str) else {})


@blueprint.post("/verify")
def verify() -> Response:
    """Reply with the body and `reward`. If the sample is `failed` or `unscored`, mark it for exclusion in NeMo Gym.

    An `unscored` sample without a value, as with the error policy `none`, gets the error 400 instead.
    """
    body = read_object()
    refuse_misspelled(body, ("reward_type",))
    fields = {name: value for name, value in body.items() if name not in REPLY_FIELDS}
    _check_json(fields)
    [score] = score_samples([_sample(body, fields)])
    reply = {**fields, "reward": reward_value(score), **_failure_fields(score)}
    return jsonify(reply) if score.status == "failed" else reply_without_rewards([score]) or jsonify(reply)


@blueprint.post("/aggregate_metrics")
def aggregate_metrics() -> Response:
    """Reply with statistics of many verified responses, which the collector logs after its rollouts."""
    return jsonify(nemo_gym_metrics.aggregate(read_field(read_object(), "verify_responses", list)))


def _sample(body: Mapping[str, Any], fields: Mapping[str, Any]) -> Request:
    """Return the sample in a body; `fields` are the body without the fields of an earlier reply."""
    parameters = read_field(body, "responses_create_params", dict)
    response = _read_output(read_field(body, "response", dict))
    golden = next((fields[name] for name in REFERENCE_FIELDS if fields.get(name) is not None), _unit_tests(fields))
    extra = drop_server_fields(
        {name: value for name, value in fields.items() if name not in (*NOT_EXTRA, *REFERENCE_FIELDS)}
    )
    task = _read_task(parameters)
    question = fields.get("question") or (task if isinstance(task, str) else last_text(task, "user"))
    sample = make_sample(get_source(body), question, response, golden, extra)
    if not has_more_than_text(task):
        return sample
    # As from TRL: a judge reads the whole conversation, a function's parameter `prompt` the question.
    known = {name: value for name, value in (sample.extra_info or {}).items() if name != "prompt"}
    return replace(sample, extra_info={**known, "question": question, "messages": task})


def _read_task(parameters: Mapping[str, Any]) -> str | Chat:
    """Return the task: `input`, a text or messages, after the system message `instructions`, if there is one."""
    task, instructions = parameters.get("input"), parameters.get("instructions")
    if is_deep(task):
        raise ApiError(400, TOO_DEEP, "responses_create_params.input")
    if isinstance(task, str):
        task = {"role": "user", "content": task} if instructions else task
    if isinstance(task, str):
        return task
    system = [{"role": "system", "content": instructions}] if instructions else []
    return Chat([*system, *to_chat(task)])


def _unit_tests(body: Mapping[str, Any]) -> Any:
    """Return the tests in the body of a NeMo Gym `code_gen` environment; None if the body has no tests."""
    metadata = body.get("verifier_metadata")
    return metadata.get("unit_tests") if isinstance(metadata, dict) else None


def _failure_fields(score: Score) -> dict[str, Any]:
    if score.status == "failed":
        return {
            "_ng_failure_class": FAILURE_CLASS,
            "_ng_failure_judge_error": score.reason,
            "mask_sample": True,
            "failure_kind": FAILURE_CLASS,
            "failure_reason": score.reason,
        }
    if score.status == "unscored":
        return {"mask_sample": True, "failure_kind": "rewardstack:unscored", "failure_reason": score.reason}
    return {}


def _read_output(response: Mapping[str, Any]) -> Any:
    """Return the policy's turns, calls of tools and their results as messages; empty if the policy said nothing."""
    output = read_field(response, "output", list, "response.")
    for at, item in enumerate(output):
        if not isinstance(item, dict):
            where = f"response.output[{at}]"
            raise ApiError(400, f"{where} must be an object, got {json_type(item)}", where)
    if is_deep(output):
        raise ApiError(400, TOO_DEEP, "response.output")
    chat = to_chat(output)
    return chat if last_message(chat, "assistant") else ""


def _check_json(body: Mapping[str, Any]) -> None:
    """Raise ApiError if the body has NaN or Infinity. Python's parser accepts them, but they are not valid JSON."""
    try:
        json.dumps(body, allow_nan=False)
    except ValueError as error:
        raise ApiError(400, "the body contains NaN, Infinity or a number too long for a float", "body") from error
