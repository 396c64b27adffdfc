"""rewardstack's protocol: `POST /v1/score` scores samples, `POST /v1/explain` explains the score of one sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.wire import score_record
from rewardstack.errors import UnknownSourceError
from rewardstack.score import Request
from rewardstack_rules.http.context import context
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.body import (
    json_type,
    read_items,
    read_object,
    refuse_misspelled,
    require_fields,
)
from rewardstack_rules.http.protocols.scoring import check_no_server_fields, explain_sample, score_samples

blueprint = Blueprint("score", __name__)

FIELDS = frozenset({"data_source", "solution_str", "response", "ground_truth", "reward_model", "extra_info"})
"""The fields of a sample. `response` and `reward_model.ground_truth` are read if `solution_str` and `ground_truth` are
missing or null, as in the rows of `rewardstack score`."""


@blueprint.post("/v1/score")
def score() -> Response:
    """Score `{"items": [{"data_source", "solution_str", "ground_truth", "extra_info"}]}`; reply `{"scores": [...]}`."""
    requests = [*convert_samples(read_items())]
    return jsonify(scores=[score_record(score) for score in score_samples(requests)])


@blueprint.post("/v1/explain")
def explain() -> Response:
    """Explain one sample in the format of `/v1/score`; reply `{"data_source", "score", "error", "steps"}`.

    If the score is cached, the steps do not show how it was computed. With `"rescore": true`, the sample is then scored
    again to show this, but the reply still has the cached score.
    """
    body = read_object()
    refuse_misspelled(body, ("rescore",))
    rescore = body.get("rescore", False)
    if not isinstance(rescore, bool):
        raise ApiError(400, f"rescore must be a boolean, got {json_type(rescore)}", "rescore")
    return jsonify(explain_sample(read_sample(body, "body"), rescore=rescore).record())


def convert_samples(items: Iterable[Any], check: Callable[[str], object] = lambda source: None) -> Iterator[Request]:
    """Yield the samples as `Request` objects, in order. `read_sample` converts each sample.

    Args:
        items: the samples as parsed JSON.
        check: called with each new `data_source`; raises ConfigError if its samples cannot be scored.

    Raises:
        ApiError: see `read_sample`.
        UnknownSourceError: no route has a sample's `data_source`; the error's `field` names the sample.
        ConfigError: `check` raised it.
    """
    known: set[str] = set()
    for at, item in enumerate(items):
        sample = read_sample(item, f"items[{at}]")
        if sample.data_source not in known:
            try:
                context().evaluator.check_source(sample.data_source)
                check(sample.data_source)
            except UnknownSourceError as error:
                raise UnknownSourceError(str(error), f"items[{at}].data_source") from error
            known.add(sample.data_source)
        yield sample


def read_sample(item: Any, where: str) -> Request:
    """Convert a sample in the format of `/v1/score` to a `Request`.

    Args:
        item: the sample as parsed JSON.
        where: name of the sample for errors.

    Raises:
        ApiError: 400; the sample is malformed, or sets a URL, a key or a file that only the server may set.
    """
    if not isinstance(item, dict):
        raise ApiError(400, f"{where} must be an object, got {json_type(item)}", where)
    if not item.keys() <= FIELDS:
        refuse_misspelled(item, sorted(FIELDS), f"{where}.")
    require_fields(item, ("data_source",), f"{where}.")
    source = item["data_source"]
    if not isinstance(source, str):
        raise ApiError(400, f"{where}.data_source must be a string, got {json_type(source)}", f"{where}.data_source")
    extra = item.get("extra_info")
    if extra and isinstance(extra, dict):
        check_no_server_fields(extra, f"{where}.extra_info")
    solution, reference, reward_model = item.get("solution_str"), item.get("ground_truth"), item.get("reward_model")
    if solution is None:
        solution = item.get("response")
    if reference is None and isinstance(reward_model, dict):
        reference = reward_model.get("ground_truth")
    return Request(source, solution, reference, extra)
