"""ROLL's reward system: `POST /roll/submit`, `GET /roll/result` (`roll/.../rewards/remote_reward_system_worker.py`).

`{"prompt", "response", "reward_info", "timeout", ...}` to `{"reward_request_id", "errcode": 0}`, and
`{"reward_request_id"}` to `{"errcode": 0, "reward_score"}`. The protocol foresees that work goes on between the two.
Here it is done when the first is answered, and the id says what came of it. So nothing is stored, whichever process of
whichever server is asked knows the result, and none is ever lost or runs on for nobody. The trainer waits 20 s for the
first and tries five times; what takes longer is scored meanwhile, and a later try reads it from the cache. An id that
was tampered with tells its maker a reward of his own making, and nobody else anything.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.deadline import TIMEOUT, read_timeout
from rewardstack.core.json_types import is_finite
from rewardstack.score import STATUSES, Score
from rewardstack_rules.http.errors import ApiError, unavailable
from rewardstack_rules.http.protocols.body import json_type, read_field, read_object
from rewardstack_rules.http.protocols.scoring import (
    all_failed,
    make_sample,
    reward_of,
    score_samples,
    source_of,
    without_reward,
    without_secrets,
)

blueprint = Blueprint("roll", __name__)

IDENT = re.compile(rf"^({'|'.join(STATUSES)})_(-?\d[\d.e+-]{{0,31}})_[0-9a-f]{{32}}\Z", re.ASCII)


@blueprint.post("/roll/submit")
def submit() -> Response:
    """Scores a sample; 503 where the infrastructure failed it, so that the trainer submits it again."""
    body = read_object()
    for name in ("prompt", "response"):
        if name not in body:
            raise ApiError(400, f"{name} is missing", name)
    info = read_field(body, "reward_info", dict) if body.get("reward_info") is not None else {}
    extra = without_secrets({name: value for name, value in info.items() if name != "ground_truth"})
    sample = make_sample(source_of(body), body["prompt"], body["response"], info.get("ground_truth"), extra)
    [score] = score_samples([sample], limit=_timeout(body), outlives_client=True)
    if all_failed([score]):
        return unavailable(f"the sample was not scored: {score.reason}")
    return without_reward([score]) or jsonify(reward_request_id=_ident(score), errcode=0)


@blueprint.route("/roll/result", methods=["GET", "POST"])
def result() -> Response:
    """The reward that an id stands for. POST as well, for not every client and proxy sends a body with GET."""
    ident = read_field(read_object(), "reward_request_id", str)
    found = IDENT.match(ident)
    if found is None or not is_finite(value := _float(found[2])):
        raise ApiError(404, "no such result; send the reward_request_id that /roll/submit gave", "reward_request_id")
    reply: dict[str, Any] = {"errcode": 0, "reward_score": value}
    return jsonify(reply if found[1] == "ok" else {**reply, "errmsg": found[1]})


def _ident(score: Score) -> str:
    return f"{score.status}_{reward_of(score)!r}_{uuid.uuid4().hex}"


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _timeout(body: dict[str, Any]) -> float | None:
    """Seconds after which the trainer has the task cancelled.

    Raises:
        ApiError: 400; it is no such number.
    """
    timeout = body.get("timeout")
    seconds = read_timeout(timeout)
    if timeout is not None and seconds is None:
        shown = f"{timeout:g}" if is_finite(timeout) else json_type(timeout)
        raise ApiError(400, f"timeout must be {TIMEOUT}, got {shown}; leave it out for no limit of your own", "timeout")
    return seconds
