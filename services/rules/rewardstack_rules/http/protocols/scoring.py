"""Code that all protocols share: find the `data_source`, create samples, score them, and reply with rewards."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from flask import Response, g, jsonify, request

from rewardstack.core.deadline import HEADER, read_header
from rewardstack.core.messages import last_text
from rewardstack.core.steps import Explanation
from rewardstack.core.wire import SERVER_FIELD_ERROR, is_server_field
from rewardstack.score import Request, Score
from rewardstack_rules.http.connection import client_is_there
from rewardstack_rules.http.context import context
from rewardstack_rules.http.errors import ApiError, unavailable
from rewardstack_rules.http.protocols.body import json_type, refuse_misspelled
from rewardstack_rules.http.waiting import waiting_requests
from rewardstack_rules.scoring.cancellation import always_wanted

MAX_SAMPLES = 100_000
SAMPLE_BYTES = 512
"""Bytes charged for a sample in addition to its text. `admission` charges about a quarter of the memory that a request
takes; a sample, its score and its part of the reply take 2 to 3 kB."""
EXPLANATION_COPIES = 8
"""Approximate number of copies of a sample's text in memory during an explanation."""
OTHER_NAMES = ("type", "data_source")
"""Query parameters that users send instead of `reward_type`. In a body, trainers may use these names for other data."""

log = logging.getLogger(__name__)


def get_source(body: Mapping[str, Any]) -> str:
    """Return the `data_source` of a request.

    The reward type comes from the body. If the body has none, it comes from the query, or else from the server's
    settings.

    Raises:
        ApiError: 400; the reward type is not a string, or the query misspells the parameter `reward_type`.
        UnknownSourceError: the reward type is unknown; the message lists the known ones.
    """
    here = context()
    _check_query()
    name = body.get("reward_type")
    if name is None or name == "":
        name = request.args.get("reward_type") or _default_type(here.settings.reward_type)
    if not isinstance(name, str):
        raise ApiError(400, f"reward_type must be a string, got {json_type(name)}", "reward_type")
    return here.evaluator.get_source(name)


def _check_query() -> None:
    """Refuse a query with a misspelled `reward_type`, or with another name for it."""
    refuse_misspelled(request.args, ("reward_type",), what="query parameter")
    for name in OTHER_NAMES:
        if name in request.args and "reward_type" not in request.args:
            raise ApiError(400, f"query parameter {name!r} is not known; use 'reward_type'", name)


@lru_cache(maxsize=1)
def _default_type(reward_type: str) -> str:
    """Return the server's reward type; log a warning, once per process, if REWARD_TYPE is not set."""
    if not os.environ.get("REWARD_TYPE"):
        log.warning(
            "REWARD_TYPE is not set and a request has no reward_type, so the default %s is used, which expects <think> "
            "and <answer> tags; set REWARD_TYPE, or send reward_type",
            reward_type,
        )
    return reward_type


def make_sample(
    source: str, prompt: Any, response: Any, golden: Any, extra: Mapping[str, Any] | None = None
) -> Request:
    """Create a sample. If it has no reference, use the golden response to the prompt's last user message.

    Args:
        source: the `data_source`, from `get_source`.
        prompt: a text or messages; reward functions get it as `prompt`.
        response: the policy's text or messages.
        golden: the reference or references; None, or empty as OpenRLHF sends it, if there are none.
        extra: additional fields for reward functions.
    """
    text = prompt if isinstance(prompt, str) else last_text(prompt, "user")
    if golden in (None, "", []) and text is not None:
        golden = context().golden.find(text)
    return Request(source, response, golden, {**(extra or {}), "prompt": prompt})


def score_samples(
    samples: Sequence[Request], limit: float | None = None, *, outlives_client: bool = False
) -> list[Score]:
    """Score samples within the caller's deadline, and return the scores in order.

    Args:
        samples: the samples to score.
        limit: seconds that the caller waits, as stated in the request's body; None if the body states none. If there is
            also a deadline header, the shorter time applies.
        outlives_client: whether to finish and cache the scores even if the client closes the connection.

    Raises:
        ApiError: 400 if the deadline header is malformed; 413 if there are too many samples.
        ConfigError: a source is unknown; nothing was scored.
        BudgetError: the run's budget for models is used up.
        AbandonedError: the client has closed the connection.
        OverloadError: other requests use up the budget of bytes, or too many slow requests wait.
    """
    if len(samples) > MAX_SAMPLES:
        message = f"{len(samples)} samples; at most {MAX_SAMPLES} are allowed per request: send fewer, or a job (/jobs)"
        raise ApiError(413, message, "body")
    g.charge.add(SAMPLE_BYTES * len(samples))
    limits = [seconds for seconds in (limit, _read_limit()) if seconds is not None]
    is_wanted = always_wanted if outlives_client else client_is_there()
    scores = context().evaluator.score(
        samples,
        limit=min(limits, default=None),
        tenant=g.tenant,
        is_wanted=is_wanted,
        while_waiting=waiting_requests().count_waiting,
    )
    g.statuses = Counter(score.status for score in scores)
    return scores


def explain_sample(sample: Request, *, rescore: bool) -> Explanation:
    """Score a sample within the caller's deadline, and return the explanation.

    Args:
        sample: a sample from `score.read_sample`.
        rescore: whether to score the sample again if its score is cached, to get the steps. The cached score is kept.

    Raises:
        ApiError: 400; the deadline header is malformed.
        UnknownSourceError: the sample's source is unknown.
        OverloadError: other requests use up the budget of bytes, or too many slow requests wait.
    """
    context().evaluator.check_source(sample.data_source)
    g.charge.add(EXPLANATION_COPIES * g.charge.bytes + SAMPLE_BYTES)
    return context().evaluator.explain(
        sample,
        limit=_read_limit(),
        tenant=g.tenant,
        rescore=rescore,
        is_wanted=client_is_there(),
        while_waiting=waiting_requests().count_waiting,
    )


def _read_limit() -> float | None:
    """Return the seconds in the caller's deadline header; None if there is no header."""
    text = request.headers.get(HEADER)
    if text is None:
        return None
    seconds = read_header(text)
    if seconds is None:
        raise ApiError(400, f"{HEADER} must be a finite number of milliseconds, 0 or more", HEADER)
    return seconds


def reply_without_rewards(scores: Sequence[Score]) -> Response | None:
    """Return an error reply if a sample has no value, for protocols whose rewards are always numbers.

    A sample can lack a value with the error policies `raise` and `none`. A reward of 0 would be wrong then, because it
    could be higher than the reward of a wrong answer.

    Returns:
        A 503 reply if such a sample failed; None if all samples have a value.

    Raises:
        ApiError: 400; a sample is unscored and has no value.
    """
    missing = [score for score in scores if score.value is None]
    failed = next((score for score in missing if score.status == "failed"), None)
    if failed is not None:
        statuses = [score.status for score in scores]
        return unavailable(f"a sample was not scored: {failed.reason}", failed.cause, statuses=statuses)
    if missing:
        raise ApiError(400, f"a sample cannot be scored: {missing[0].reason}", missing[0].field or "body")
    return None


def reward_value(score: Score) -> float:
    """Return the value of a score; 0.0 if it has none."""
    return 0.0 if score.value is None else score.value


def all_failed(scores: Sequence[Score]) -> bool:
    """Return whether every sample is `failed`, in which case the caller should try again; False without samples."""
    return bool(scores) and all(score.status == "failed" for score in scores)


def batch_reply(samples: Sequence[Score], **fields: Any) -> Response:
    """Reply with the rewards and statuses of a batch, or with 503 if every sample is `failed`.

    Args:
        samples: the scores of the samples, in order.
        fields: additional fields that the trainer expects.
    """
    statuses = [score.status for score in samples]
    reply = {"rewards": [reward_value(score) for score in samples], **fields, "statuses": statuses}
    if all_failed(samples):
        return unavailable(f"no sample was scored: {samples[0].reason}", samples[0].cause, **reply)
    return reply_without_rewards(samples) or jsonify(reply)


def drop_server_fields(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a data set's row without those that only the server's settings may set."""
    return {name: value for name, value in extra.items() if not is_server_field(name)}


def check_no_server_fields(extra: Mapping[str, Any], where: str) -> None:
    """Check that `extra_info` has no field that only the server's settings may set.

    Args:
        extra: the `extra_info`.
        where: name of the `extra_info` for the error.

    Raises:
        ApiError: 400; there is such a field.
    """
    for name in extra:
        if is_server_field(name):
            field = f"{where}.{name}"
            raise ApiError(400, f"{field}: {SERVER_FIELD_ERROR}", field)
