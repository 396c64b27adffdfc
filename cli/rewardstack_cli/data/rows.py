"""Convert rows of a data file to samples, and scores to the fields of an output row."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack.core.messages import is_conversation
from rewardstack.errors import RequestError
from rewardstack.score import Request, Score

SCORE_FIELDS = ("value", "status", "reason", "cause", "cached", "parts", "label_mass", "usage")
"""Fields of a score in an output row; they replace input fields with the same names."""

SAMPLE_FIELDS = ("name", "data_source", "solution_str", "response", "ground_truth", "reward_model", "extra_info")
"""The fields that scoring needs, and the row's name."""


class Row(NamedTuple):
    """One row of a data file.

    Args:
        file: the file that contains the row.
        position: position in the file, such as `line 3`.
        fields: the fields of the row, in order.
    """

    file: Path
    position: str
    fields: dict[str, Any]

    @property
    def location(self) -> str:
        """The file and the position in the file, for messages."""
        return f"{self.file}, {self.position}"


def to_request(fields: Mapping[str, Any], data_source: str | None = None) -> Request:
    """Return the sample in a row of a data file.

    The row has these fields:

    - `data_source`: a string; optional if the argument `data_source` is set.
    - `solution_str` or `response`: the response, as a string or chat messages.
    - `ground_truth`, or `reward_model.ground_truth` as in verl: the reference; null if the route needs none.
    - `extra_info` (optional): options. Options that are null count as missing, because a row of a parquet file has null
      for each option that only other rows set.

    Args:
        fields: the fields of the row.
        data_source: the `data_source` if the row has none.

    Raises:
        RequestError: a field is missing or has the wrong type; the message names the field.
    """
    source = fields.get("data_source")
    source = data_source if source is None else source
    if source is None:
        raise RequestError("data_source is missing; add the field, or --data-source NAME for all rows", "data_source")
    name = "response" if fields.get("solution_str") is None and "response" in fields else "solution_str"
    if fields.get(name) is None:
        raise RequestError("solution_str (or response) is missing", "solution_str")
    extra = fields.get("extra_info")
    _check_type(source, str, "data_source", "a string")
    if not is_conversation(fields[name]):
        _check_type(fields[name], str, name, "a string or chat messages")
    _check_type(extra, (dict, type(None)), "extra_info", "an object")
    known_fields = {key: value for key, value in (extra or {}).items() if value is not None}
    return Request(source, fields[name], _ground_truth(fields), known_fields)


def _ground_truth(fields: Mapping[str, Any]) -> Any:
    reward_model = fields.get("reward_model")
    places = fields, reward_model if isinstance(reward_model, dict) else {}
    found = [place["ground_truth"] for place in places if "ground_truth" in place]
    if found:
        return next((value for value in found if value is not None), None)
    message = "ground_truth (or reward_model.ground_truth) is missing; write null where the route needs none"
    raise RequestError(message, "ground_truth")


def _check_type(value: Any, kind: type | tuple[type, ...], field: str, what: str) -> None:
    if not isinstance(value, kind):
        raise RequestError(f"{field}: expected {what}, got {type(value).__name__}", field)


def input_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row, without those that are named in `SCORE_FIELDS`."""
    return {name: value for name, value in fields.items() if name not in SCORE_FIELDS}


def text_size(fields: Mapping[str, Any]) -> int:
    """Return the total length of all strings and bytes in a row, at any depth."""
    total = 0
    values: list[Any] = [fields]
    while values:
        value = values.pop()
        if isinstance(value, (str, bytes)):
            total += len(value)
        elif isinstance(value, Mapping):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value
    return total


def score_fields(score: Score) -> dict[str, Any]:
    """Return the fields of `score` for an output row."""
    usage = None if score.usage is None else score.usage._asdict()
    cause = None if score.cause is None else score.cause.value
    return {**{name: getattr(score, name) for name in SCORE_FIELDS}, "cause": cause, "usage": usage}


def to_json(fields: Mapping[str, Any]) -> bytes:
    """Return a row as one line of JSON in UTF-8, without a line end.

    Equal fields in the same order give equal lines. Bytes are written as base64. Other values of types that JSON lacks,
    such as dates and decimals in a parquet file, are written as text. NaN and infinite numbers are written as null.
    """
    try:
        text = json.dumps(fields, ensure_ascii=False, default=_as_text, allow_nan=False)
    except ValueError:  # a number is not finite
        text = json.dumps(_finite(fields), ensure_ascii=False, default=_as_text)
    # Only lone surrogates cannot be encoded; Python's \udXXX escape for them is valid JSON.
    return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    """Return `value` with None in place of each NaN or infinite number, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [*map(_finite, value)] if isinstance(value, (list, tuple)) else value


def _as_text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
