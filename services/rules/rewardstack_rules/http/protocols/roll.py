"""ROLL's protocol: `POST /roll/submit`, `GET /roll/result` (`roll/.../rewards/remote_reward_system_worker.py`).

`/roll/submit` accepts `{"prompt", "response", "reward_info", "timeout", ...}` and returns `{"reward_request_id",
"errcode": 0}`; `/roll/result` accepts `{"reward_request_id"}` and returns `{"errcode": 0, "reward_score"}`. If the
sample's status is not `ok`, the reply also has the status as `errmsg`.

The protocol allows asynchronous work between the two calls. Here, the first call scores the sample, and returns an id
that contains the result. So nothing is stored, and any process of any server can answer the second call. The trainer
waits 20 s for the first call and tries five times. If a sample takes longer, scoring continues, and a later try reads
the score from the cache. Ids are not signed, because a client that forges one deceives only itself.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.deadline import TIMEOUT_RANGE, read_timeout
from rewardstack.core.json_types import is_finite
from rewardstack.score import STATUSES, Score
from rewardstack_rules.http.errors import ApiError, unavailable
from rewardstack_rules.http.protocols.body import (
    json_type,
    read_field,
    read_object,
    refuse_misspelled,
    require_fields,
)
from rewardstack_rules.http.protocols.scoring import (
    all_failed,
    drop_server_fields,
    get_source,
    make_sample,
    reply_without_rewards,
    reward_value,
    score_samples,
)

blueprint = Blueprint("roll", __name__)

FIELDS = ("prompt", "response", "reward_info", "timeout", "reward_type")
"""The fields of `/roll/submit` that this server reads."""
RESULT_ID = re.compile(rf"^({'|'.join(STATUSES)})_(-?\d[\d.e+-]{{0,31}})_[0-9a-f]{{32}}\Z", re.ASCII)


@blueprint.post("/roll/submit")
def submit() -> Response:
    """Score a sample. Reply 503 if it is `failed`, so that the trainer submits it again."""
    body = read_object()
    refuse_misspelled(body, FIELDS)
    require_fields(body, ("prompt", "response"))
    info = read_field(body, "reward_info", dict) if body.get("reward_info") is not None else {}
    extra = drop_server_fields({name: value for name, value in info.items() if name != "ground_truth"})
    sample = make_sample(get_source(body), body["prompt"], body["response"], info.get("ground_truth"), extra)
    [score] = score_samples([sample], limit=_timeout(body), outlives_client=True)
    if all_failed([score]):
        return unavailable(f"the sample was not scored: {score.reason}", score.cause)
    return reply_without_rewards([score]) or jsonify(reward_request_id=_result_id(score), errcode=0)


@blueprint.route("/roll/result", methods=["GET", "POST"])
def result() -> Response:
    """Reply with the reward that an id contains. POST is also allowed, because some clients send no body with GET."""
    result_id = read_field(read_object(), "reward_request_id", str)
    found = RESULT_ID.match(result_id)
    if found is None or not is_finite(value := _float(found[2])):
        raise ApiError(404, "no such result; send the id that /roll/submit returned", "reward_request_id")
    reply: dict[str, Any] = {"errcode": 0, "reward_score": value}
    return jsonify(reply if found[1] == "ok" else {**reply, "errmsg": found[1]})


def _result_id(score: Score) -> str:
    return f"{score.status}_{reward_value(score)!r}_{uuid.uuid4().hex}"


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _timeout(body: dict[str, Any]) -> float | None:
    """Return the seconds after which the trainer cancels the task; None if the body has no limit.

    Raises:
        ApiError: 400; the timeout is not a valid number.
    """
    timeout = body.get("timeout")
    seconds = read_timeout(timeout)
    if timeout is not None and seconds is None:
        shown = f"{timeout:g}" if is_finite(timeout) else json_type(timeout)
        raise ApiError(400, f"timeout must be {TIMEOUT_RANGE}, got {shown}; omit it for no limit", "timeout")
    return seconds
