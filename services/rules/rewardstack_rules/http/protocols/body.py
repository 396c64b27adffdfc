"""Reading requests: JSON, the deadline, and what may not come in over HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from flask import g, request
from werkzeug.exceptions import RequestEntityTooLarge

from rewardstack.core.deadline import HEADER
from rewardstack_rules.http.admission import VALUE_BYTES
from rewardstack_rules.http.context import context
from rewardstack_rules.http.draining import BROKEN_BODY
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.depth import pruned
from rewardstack_rules.http.protocols.tokens import count_values

MAX_VALUES = 500_000
"""Most values of one body: a hundred thousand samples of four fields. Parsed, that many take 65 MB at most
(`VALUE_BYTES` says how that was measured) and half a second, in which a process does nothing else."""
PIECE = 2**18
"""Bytes of a body that are read at a time."""
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
        ApiError: 415 for another content type than JSON, 400 for what is no JSON object, 413 for too many values.
        OverloadError: other requests hold all that the process may hold at once.
        RequestEntityTooLarge: it is longer than the server reads.
    """
    if not request.is_json:
        raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")
    data = _read()
    count = require_few(data, MAX_VALUES, "body", "send fewer samples at once")
    g.charge.add(max(0, VALUE_BYTES * count - len(data)))
    body = parse(data, "body")
    if not isinstance(body, dict):
        raise ApiError(400, f"the body must be a JSON object, got {json_type(body)}", "body")
    return body


def require_few(data: bytes, most: int, field: str, remedy: str) -> int:
    """How many values JSON holds, found before it is parsed.

    Args:
        data: the JSON.
        most: values that it may hold.
        field: how a complaint calls it.
        remedy: what to do where it holds more.

    Raises:
        ApiError: 413; it holds more.
    """
    count = count_values(data, most)
    if count > most:
        raise ApiError(413, f"{field} holds more than {most} values (texts, numbers, lists …); {remedy}", field)
    return count


def parse(data: bytes, field: str) -> Any:
    """The value of JSON, in UTF-8 as RFC 8259 has it.

    Args:
        data: the JSON.
        field: how a complaint calls it.

    Raises:
        ApiError: 400; it is no JSON, or too long for how deep it is nested.
    """
    try:
        return _shallow(data)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"{field} is not JSON that can be read: {error}", field) from error


def _shallow(data: bytes) -> Any:
    try:
        return _loads(data)
    except RecursionError:
        return _loads(pruned(data))


def _loads(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig", "surrogatepass"), parse_int=read_integer)


def _read() -> bytes:
    limit = context().settings.max_body_bytes
    request.max_content_length = limit + 1  # a body without a length is cut there without a word
    data = bytearray()
    try:
        while piece := request.stream.read(PIECE):
            g.charge.add(len(piece))
            data += piece
    except BROKEN_BODY as error:
        raise ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body") from error
    if len(data) > limit:
        raise RequestEntityTooLarge
    return bytes(data)


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
