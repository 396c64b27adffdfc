"""What all protocols share: by what a request is scored, its samples, and their rewards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from flask import Response, g, jsonify, request

from rewardstack.core.deadline import HEADER, read_header
from rewardstack.core.steps import Explanation
from rewardstack.core.wire import NOT_TAKEN, is_servers_own
from rewardstack.score import Request, Score
from rewardstack_rules.http.context import context
from rewardstack_rules.http.errors import ApiError, unavailable
from rewardstack_rules.http.protocols.body import json_type
from rewardstack_rules.http.protocols.messages import last_user_text
from rewardstack_rules.http.waiting import client_is_there, waiting_requests
from rewardstack_rules.scoring.wanted import always

MAX_SAMPLES = 100_000
SAMPLE_BYTES = 512
"""Bytes that a sample counts for beside its text: with its score and its reply it takes up to 3 kB of memory."""
EXPLAINED_TIMES = 8
"""How often an explanation holds the text of a sample, about: in its steps, in its reply, and on the way to both."""


def source_of(body: Mapping[str, Any]) -> str:
    """The `data_source` of a request's samples, by `reward_type` of the body, else of the query, else the server's.

    Raises:
        ApiError: 400; it is no string.
        UnknownSourceError: nothing scores by it; the message lists what is known.
    """
    here = context()
    name = body.get("reward_type")
    if name is None or name == "":
        name = request.args.get("reward_type") or here.settings.reward_type
    if not isinstance(name, str):
        raise ApiError(400, f"reward_type must be a string, got {json_type(name)}", "reward_type")
    return here.evaluator.source_of(name)


def make_sample(
    source: str, prompt: Any, response: Any, golden: Any, extra: Mapping[str, Any] | None = None
) -> Request:
    """A sample; without a golden response it has the one that the server's data set has for the prompt.

    Args:
        source: as `source_of` has it.
        prompt: a text, or messages of which the last of the user counts; reward functions can read it as `prompt`.
        response: what the policy wrote.
        golden: the reference or references.
        extra: further fields that reward functions can read.
    """
    if golden is None and (text := last_user_text(prompt)) is not None:
        golden = context().golden.find(text)
    return Request(source, response, golden, {**(extra or {}), "prompt": prompt})


def score_samples(
    samples: Sequence[Request], limit: float | None = None, *, outlives_client: bool = False
) -> list[Score]:
    """One score for each sample, in order, within the caller's deadline; the request's log line counts them.

    Args:
        samples: what is to be scored.
        limit: seconds that the caller says elsewhere than in the deadline header that it waits.
        outlives_client: whether they are scored to the end, and cached, where the client closes the connection.

    Raises:
        ApiError: 400; the deadline header is malformed. 413; there are too many samples.
        ConfigError: a source is unknown; nothing was scored.
        OverloadError: other requests hold all that the process may hold at once, or too many take long.
    """
    if len(samples) > MAX_SAMPLES:
        message = f"{len(samples)} samples; at most {MAX_SAMPLES} are scored at once: send fewer, or a job (/jobs)"
        raise ApiError(413, message, "body")
    g.charge.add(SAMPLE_BYTES * len(samples))
    limits = [seconds for seconds in (limit, _read_limit()) if seconds is not None]
    is_wanted = always if outlives_client else client_is_there()
    scores = context().evaluator.score(
        samples,
        limit=min(limits, default=None),
        tenant=g.tenant,
        is_wanted=is_wanted,
        meanwhile=waiting_requests().place,
    )
    g.statuses = Counter(score.status for score in scores)
    return scores


def explain_sample(sample: Request, *, anew: bool) -> Explanation:
    """How a sample comes to its score, within the caller's deadline.

    Args:
        sample: of a checked request.
        anew: whether it is scored as well where the cache has the score.

    Raises:
        ApiError: 400; the deadline header is malformed.
        UnknownSourceError: nothing scores by its source.
        OverloadError: as for `score_samples`.
    """
    context().evaluator.check_source(sample.data_source)
    g.charge.add(EXPLAINED_TIMES * g.charge.bytes + SAMPLE_BYTES)
    return context().evaluator.explain(
        sample,
        limit=_read_limit(),
        tenant=g.tenant,
        anew=anew,
        is_wanted=client_is_there(),
        meanwhile=waiting_requests().place,
    )


def _read_limit() -> float | None:
    """Seconds that the caller still waits by its header, None where it did not say."""
    text = request.headers.get(HEADER)
    if text is None:
        return None
    seconds = read_header(text)
    if seconds is None:
        raise ApiError(400, f"{HEADER} must be a finite number of milliseconds, 0 or more", HEADER)
    return seconds


def without_reward(scores: Sequence[Score]) -> Response | None:
    """Return the refusal of a request whose protocol knows numbers alone, if a sample has none.

    By the policies `raise` and `none` 0 is no reward of a sample without a score: it could be better than a wrong
    answer's.

    Raises:
        ApiError: 400; such a sample cannot be judged.
    """
    lost = [score for score in scores if score.value is None]
    failed = next((score for score in lost if score.status == "failed"), None)
    if failed is not None:
        return unavailable(f"a sample was not scored: {failed.reason}", statuses=[score.status for score in scores])
    if lost:
        raise ApiError(400, f"a sample cannot be judged: {lost[0].reason}", lost[0].field or "body")
    return None


def reward_of(score: Score) -> float:
    """The number that stands for a score where the protocol has no word for none."""
    return 0.0 if score.value is None else score.value


def all_failed(scores: Sequence[Score]) -> bool:
    """Whether the infrastructure failed every sample, so that the caller had better ask again."""
    return bool(scores) and all(score.status == "failed" for score in scores)


def batch_reply(samples: Sequence[Score], **beside: Any) -> Response:
    """The rewards and statuses of a batch; 503 where the infrastructure failed all of it.

    Args:
        samples: their scores, in order.
        beside: what else the trainer expects, by key.
    """
    statuses = [score.status for score in samples]
    reply = {"rewards": [reward_of(score) for score in samples], **beside, "statuses": statuses}
    if all_failed(samples):
        return unavailable(f"no sample was scored: {samples[0].reason}", **reply)
    return without_reward(samples) or jsonify(reply)


def without_secrets(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set's row without those that `refuse_secrets` would refuse; a row may well have some."""
    return {name: value for name, value in extra.items() if not is_servers_own(name)}


def refuse_secrets(extra: Mapping[str, Any], where: str) -> None:
    """Returns where `extra_info` holds nothing that only the server's own settings may give.

    Args:
        extra: the object.
        where: how a complaint names it.

    Raises:
        ApiError: 400; it does.
    """
    for name in extra:
        if is_servers_own(name):
            field = f"{where}.{name}"
            raise ApiError(400, f"{field}: {NOT_TAKEN}", field)
