"""Reading requests: JSON, the deadline, and what may not come in over HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from rewardstack.deadline import HEADER
from rewardstack_rules.context import context
from rewardstack_rules.draining import BROKEN_BODY
from rewardstack_rules.http_errors import ApiError
from rewardstack_rules.protocols.depth import pruned

MAX_INTEGER_DIGITS = 4300
"""Longer integers are read as floats; Python refuses to read them exactly."""
JSON_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
REFUSED = ("url", "api_key", "path")
"""Fields of `extra_info`, or endings of their names after `_`, that only the server's own settings may give."""

T = TypeVar("T", dict[str, Any], list[Any], str)


def read_object() -> dict[str, Any]:
    """The request's body.

    Raises:
        ApiError: 415 for another content type than JSON, 400 for what is no JSON object.
        RequestEntityTooLarge: it is longer than the server reads.
    """
    if not request.is_json:
        raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")
    try:
        body = _parsed(_read())
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"the body is not JSON that can be read: {error}", "body") from error
    if not isinstance(body, dict):
        raise ApiError(400, f"the body must be a JSON object, got {json_type(body)}", "body")
    return body


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data, parse_int=read_integer)
    except RecursionError:
        return json.loads(pruned(data), parse_int=read_integer)


def _read() -> bytes:
    limit = context().settings.max_body_bytes
    request.max_content_length = limit + 1  # a body without a length is cut there without a word
    try:
        data = request.get_data(cache=False)
    except BROKEN_BODY as error:
        raise ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body") from error
    if len(data) > limit:
        raise RequestEntityTooLarge
    return data


def read_integer(text: str) -> float:
    """An integer of JSON, as a float where it is so long that Python refuses to read it exactly."""
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else float(text)


def read_field(body: Mapping[str, Any], name: str, kind: type[T], within: str = "") -> T:
    """A field that the body must have.

    Args:
        body: the body, or an object in it.
        name: the field's.
        kind: `dict`, `list` or `str`.
        within: how a complaint names the object, with a dot at its end.

    Raises:
        ApiError: 400; it is missing, or of another type.
    """
    where = f"{within}{name}"
    if name not in body:
        raise ApiError(400, f"{where} is missing", where)
    value = body[name]
    if not isinstance(value, kind):
        raise ApiError(400, f"{where} must be {JSON_TYPES[kind]}, got {json_type(value)}", where)
    return value


def read_columns(body: Mapping[str, Any], needed: Sequence[str], optional: Sequence[str]) -> list[tuple[Any, ...]]:
    """Lists of one length, by rows.

    Args:
        body: the body.
        needed: names of lists that it must have.
        optional: names of lists that may be missing or null; their cells are then None.

    Raises:
        ApiError: 400; a list is missing, is none, or has another length than the first.
    """
    columns = {name: read_field(body, name, list) for name in needed}
    count = len(columns[needed[0]])
    for name in optional:
        columns[name] = read_field(body, name, list) if body.get(name) is not None else [None] * count
    for name, column in columns.items():
        if len(column) != count:
            raise ApiError(400, f"{name}: {len(column)} of them for {count} {needed[0]}", name)
    return list(zip(*columns.values(), strict=True))


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
        if _is_secret(name):
            raise ApiError(
                400, f"{where}.{name}: URLs, keys and paths are not taken over HTTP; leave it out", f"{where}.{name}"
            )


def without_secrets(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a data set's row without those that `refuse_secrets` would refuse; a row may well have some."""
    return {name: value for name, value in extra.items() if not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return any(name == word or name.endswith(f"_{word}") for word in REFUSED)


def json_type(value: Any) -> str:
    """What JSON calls the type of `value`."""
    return next(name for kind, name in JSON_TYPES.items() if isinstance(value, kind))
