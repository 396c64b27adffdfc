"""Parse the JSON body of a request, even if it is nested too deeply for Python's parser, and read its fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from flask import request

from rewardstack.core.misspellings import MAX_LENGTH, MAX_NAMES, SIMILARITY, SUGGESTION_SIMILARITY, find_closest
from rewardstack_rules.http.admission import JSON_TEXT, blank_escapes, read_body
from rewardstack_rules.http.errors import ApiError

MAX_INTEGER_DIGITS = 4300
"""Maximum number of digits of an integer. Longer ones become floats, because Python refuses to parse them exactly."""
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
"""Number of levels to which JSON is pruned if it is too deep for Python's parser.

A sample may have at most `json_types.MAX_DEPTH` levels, which is fewer. So a pruned sample is still too deep, and
becomes unscored.
"""
MAX_BRACKETS = 2**22
"""Maximum number of opening brackets in JSON that is pruned. Pruning that many takes about a second."""

MAX_NAMES_SHOWN, MAX_NAME_LENGTH = 10, 40
"""Maximum number of a body's fields that an error lists, and maximum number of characters of each."""

_TOKEN = re.compile(JSON_TEXT + rb"|[\[{]|[]}]")

T = TypeVar("T", dict[str, Any], list[Any], str)


def read_object() -> dict[str, Any]:
    """Return the request's body as a JSON object.

    Raises:
        ApiError: 415 for a content type other than JSON, 400 if the body is not a JSON object, 413 for too many values.
        OverloadError: the budget of the process is used up.
        RequestEntityTooLarge: the body is longer than the limit.
    """
    if not request.is_json:
        raise ApiError(415, "the body must be JSON, with Content-Type: application/json", "Content-Type")
    body = parse(read_body(), "body")
    if not isinstance(body, dict):
        raise ApiError(400, f"the body must be a JSON object, got {json_type(body)}", "body")
    return body


def read_items() -> list[Any]:
    """Return the list `items` of the request's body.

    Raises:
        ApiError: 400; the list is missing.
        Exception: anything that `read_object` raises.
    """
    return read_field(read_object(), "items", list)


def parse(data: bytes, field: str) -> Any:
    """Parse JSON in UTF-8 (RFC 8259).

    Args:
        data: the JSON.
        field: name of the JSON in the error.

    Raises:
        ApiError: 400; the data is not JSON, or is nested too deeply and has too many brackets to be pruned.
    """
    try:
        return _load_pruned(data)
    except ValueError as error:
        raise ApiError(400, f"{field} is not valid JSON: {error}", field) from error
    except RecursionError as error:
        raise ApiError(400, f"{field} is {error}; reduce the nesting", field) from error


def _load_pruned(data: bytes) -> Any:
    """Parse JSON; if it is too deep for Python's parser, prune it first."""
    try:
        return _loads(data)
    except RecursionError:
        return _loads(prune(data))


def _loads(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig", "surrogatepass"), parse_int=read_integer)


def prune(text: bytes) -> bytes:
    """Replace each list and object that is nested deeper than `LEVELS` with null. Malformed JSON stays malformed.

    Raises:
        RecursionError: the text has more than `MAX_BRACKETS` opening brackets.
    """
    if text.count(b"[") + text.count(b"{") > MAX_BRACKETS:
        raise RecursionError(f"nested deeper than {LEVELS} levels, with more than {MAX_BRACKETS} opening brackets")
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(blank_escapes(text)):
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
    """Parse an integer of JSON; return a float if it is longer than `MAX_INTEGER_DIGITS`."""
    return int(text) if len(text) <= MAX_INTEGER_DIGITS else float(text)


def read_field(body: Mapping[str, Any], name: str, kind: type[T], within: str = "") -> T:
    """Return a required field of an object.

    Args:
        body: the body, or an object in it.
        name: name of the field.
        kind: required type: `dict`, `list` or `str`.
        within: name of the object for errors, with a trailing dot; empty for the body.

    Raises:
        ApiError: 400; the field is missing, or has another type.
    """
    require_fields(body, (name,), within)
    where = f"{within}{name}"
    value = body[name]
    if not isinstance(value, kind):
        raise ApiError(400, f"{where} must be {JSON_TYPES[kind]}, got {json_type(value)}", where)
    return value


def require_fields(body: Mapping[str, Any], names: Iterable[str], within: str = "") -> None:
    """Check that an object has all fields in `names`. For `body` and `within`, see `read_field`.

    Raises:
        ApiError: 400; a field is missing, or misspelled.
    """
    for name in names:
        if name not in body:
            refuse_misspelled(body, (name,), within, similarity=SUGGESTION_SIMILARITY)
            raise ApiError(400, f"{within}{name} is missing; {list_fields(body)}", f"{within}{name}")


def list_fields(body: Mapping[str, Any]) -> str:
    """Return a list of an object's fields for an error, such as "fields sent: 'prompt', 'label'"."""
    names = [repr(name[:MAX_NAME_LENGTH]) for name in islice(body, MAX_NAMES_SHOWN)]
    more = f" and {len(body) - len(names)} more" if len(body) > len(names) else ""
    return f"fields sent: {', '.join(names) or 'none'}{more}"


def refuse_misspelled(
    sent: Mapping[str, Any], known: Sequence[str], within: str = "", what: str = "field", similarity: float = SIMILARITY
) -> None:
    """Refuse names that are probably misspelled. Other unknown names are ignored, because trainers send some.

    Args:
        sent: an object of the body, or the query parameters.
        known: the known names. A name counts as misspelled if it is similar to a known name that was not sent.
        within: name of the object for errors, with a trailing dot; empty for the body and the query.
        what: what the names are, for errors.
        similarity: minimum similarity, from 0 to 1, at which a name counts as misspelled.

    Raises:
        ApiError: 400; a name is misspelled.
    """
    absent = tuple(name for name in known if name not in sent)
    unknown = tuple(name for name in islice(sent, MAX_NAMES) if name not in known and len(name) <= MAX_LENGTH)
    if name := _find_misspelled(unknown, absent, similarity):
        meant, where = find_closest(name, absent, similarity), f"{within}{name}"
        raise ApiError(400, f"{what} {where!r} is not known; did you mean {meant!r}?", where)


@lru_cache(maxsize=256)
def _find_misspelled(unknown: tuple[str, ...], absent: tuple[str, ...], similarity: float) -> str:
    """Return the first unknown name that is similar to an absent one; empty if there is none.

    The result is cached, because the samples of a request usually have the same fields.
    """
    return next((name for name in unknown if find_closest(name, absent, similarity)), "") if absent else ""


def read_rows(body: Mapping[str, Any], required: Sequence[str], optional: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the rows of a body that has one list per column. The cells are in the order of `required`, `optional`.

    Args:
        body: the body, an object of lists of the same length.
        required: names of required lists.
        optional: names of lists that may be missing or null; their cells are then None.

    Raises:
        ApiError: 400; a column is missing or is not a list, or two columns differ in length.
    """
    columns = {name: read_field(body, name, list) for name in required}
    count = len(columns[required[0]])
    for name in optional:
        columns[name] = read_field(body, name, list) if body.get(name) is not None else [None] * count
    for name, column in columns.items():
        if len(column) != count:
            lengths = f"{name} has {len(column)} entries, but {required[0]} has {count}"
            raise ApiError(400, f"{lengths}; send lists of the same length", name)
    return list(zip(*columns.values(), strict=True))


def json_type(value: Any) -> str:
    """Return the JSON name of the type of `value`, with its article."""
    return next(name for kind, name in JSON_TYPES.items() if isinstance(value, kind))
