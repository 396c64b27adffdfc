"""Reading requests: JSON, the deadline, and what may not come in over HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from rewardstack.deadline import HEADER
from rewardstack_rules.context import context
from rewardstack_rules.http_errors import ApiError

MAX_INTEGER_DIGITS = 4300
"""Longer integers are read as floats; Python refuses to read them exactly."""
REFUSED = ("url", "api_key", "path")
"""Fields of `extra_info`, or endings of their names after `_`, that only the server's own settings may give."""


def read_object() -> dict[str, Any]:
    """The request's body.

    Raises:
        ApiError: 415 for another content type than JSON, 400 for what is no JSON object.
        RequestEntityTooLarge: it is longer than the server reads.
    """
    if not request.is_json:
        raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")
    try:
        body = json.loads(_read(), parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON that can be read: {error}", "body") from error
    if not isinstance(body, dict):
        raise ApiError(400, f"the body must be a JSON object, got {json_type(body)}", "body")
    return body


def _read() -> bytes:
    limit = context().settings.max_body_bytes
    request.max_content_length = limit + 1  # a body without a length is cut there without a word
    data = request.get_data(cache=False)
    if len(data) > limit:
        raise RequestEntityTooLarge
    return data


def _integer(text: str) -> float:
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else float(text)


def read_list(body: Mapping[str, Any], name: str) -> list[Any]:
    """A list that the body must have.

    Raises:
        ApiError: 400; it is missing, or is no list.
    """
    if name not in body:
        raise ApiError(400, f"{name} is missing", name)
    values = body[name]
    if not isinstance(values, list):
        raise ApiError(400, f"{name} must be a list, got {json_type(values)}", name)
    return values


def read_limit() -> float | None:
    """Seconds that the caller still waits, None where it did not say.

    Raises:
        ApiError: 400; the header is not a number.
    """
    text = request.headers.get(HEADER)
    if text is None:
        return None
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = math.nan
    if math.isnan(milliseconds):
        raise ApiError(400, f"{HEADER} must be a number of milliseconds", HEADER)
    return milliseconds / 1000


def refuse_secrets(extra: Mapping[str, Any], where: str) -> None:
    """Refuses servers, keys and files that a caller would have this server use.

    Raises:
        ApiError: 400; `extra` holds one. It names the field.
    """
    for name in extra:
        if name.endswith(REFUSED) and any(name == word or name.endswith(f"_{word}") for word in REFUSED):
            raise ApiError(
                400, f"{where}.{name}: URLs, keys and paths are not taken over HTTP; leave it out", f"{where}.{name}"
            )


def json_type(value: Any) -> str:
    """What JSON calls the type of `value`."""
    if value is None:
        return "null"
    names = ((bool, "a boolean"), ((int, float), "a number"), (str, "a string"), (list, "a list"))
    return next((name for kind, name in names if isinstance(value, kind)), "an object")
