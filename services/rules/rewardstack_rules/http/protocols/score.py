"""`POST /v1/score`: samples of any route, each with all that is known of its score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, jsonify

from rewardstack.core.wire import score_record
from rewardstack.score import Request
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.body import json_type, read_items
from rewardstack_rules.http.protocols.scoring import score_samples

blueprint = Blueprint("score", __name__)

SERVERS_OWN = ("url", "api_key", "path")
"""Fields of `extra_info`, or endings of their names after `_`, that only the server's own settings may give."""


@blueprint.post("/v1/score")
def score() -> Response:
    """`{"items": [{"data_source", "solution_str", "ground_truth", "extra_info"}]}` to `{"scores": [...]}`."""
    requests = [read_sample(item, f"items[{at}]") for at, item in enumerate(read_items())]
    return jsonify(scores=[score_record(one) for one in score_samples(requests)])


def read_sample(item: Any, where: str) -> Request:
    """A sample as this endpoint takes it.

    Args:
        item: of JSON.
        where: how a complaint names it.

    Raises:
        ApiError: 400; it is malformed, or would have the server use a URL, a key or a file.
    """
    if not isinstance(item, dict):
        raise ApiError(400, f"{where} must be an object, got {json_type(item)}", where)
    source = item.get("data_source")
    if not isinstance(source, str):
        raise ApiError(400, f"{where}.data_source must be a string, got {json_type(source)}", f"{where}.data_source")
    extra = item.get("extra_info")
    if isinstance(extra, dict):
        _refuse_secrets(extra, f"{where}.extra_info")
    return Request(source, item.get("solution_str"), item.get("ground_truth"), extra)  # type: ignore[arg-type]


def without_secrets(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set's row without those that `read_sample` would refuse; a row may well have some."""
    return {name: value for name, value in extra.items() if not _is_secret(name)}


def _refuse_secrets(extra: Mapping[str, Any], where: str) -> None:
    for name in extra:
        if _is_secret(name):
            field = f"{where}.{name}"
            raise ApiError(400, f"{field}: URLs, keys and paths are not taken over HTTP; leave it out", field)


def _is_secret(name: str) -> bool:
    return any(name == word or name.endswith(f"_{word}") for word in SERVERS_OWN)
