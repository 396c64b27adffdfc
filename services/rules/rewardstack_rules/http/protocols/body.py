"""A request's JSON: read whole, however deeply it is nested, and by its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from flask import request

from rewardstack_rules.http.admission import JSON_TEXT, read_body, without_escapes
from rewardstack_rules.http.errors import ApiError

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
LEVELS = 128
"""Levels that are kept of JSON that is nested deeper than Python's parser goes: more than any sample may have, so that
it is still found to be too deep."""
MOST_BRACKETS = 2**22
"""Most brackets of a body that is read so, which takes about a second; one with more is refused as a whole."""

_TOKEN = re.compile(JSON_TEXT + rb"|[\[{]|[]}]")

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
    body = parse(read_body(), "body")
    if not isinstance(body, dict):
        raise ApiError(400, f"the body must be a JSON object, got {json_type(body)}", "body")
    return body


def read_items() -> list[Any]:
    """The `items` of the request's body; raises what `read_object` raises, and ApiError where it has none."""
    return read_field(read_object(), "items", list)


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


def pruned(text: bytes) -> bytes:
    """JSON with null for each list and object that stands in `LEVELS` others; malformed JSON stays malformed.

    Raises:
        RecursionError: it has more than `MOST_BRACKETS`.
    """
    if text.count(b"[") + text.count(b"{") > MOST_BRACKETS:
        raise RecursionError(f"it is nested deeper than {LEVELS} levels, and has more than {MOST_BRACKETS} brackets")
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(without_escapes(text)):
        if token[0] in b"[{":
            if depth == LEVELS:
                kept += (text[start : token.start()], b"null")
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
            if depth == LEVELS:
                start = token.end()
    kept.append(text[start:] if depth <= LEVELS else b"")
    return b"".join(kept)


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


def json_type(value: Any) -> str:
    """What JSON calls the type of `value`."""
    return next(name for kind, name in JSON_TYPES.items() if isinstance(value, kind))
