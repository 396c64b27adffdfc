"""Encode scores for the cache, and validate and decode cached values."""

from __future__ import annotations

import json
import re
from typing import Any

from rewardstack.core.json_types import is_finite
from rewardstack.score import Score

MAX_FIELDS = 7
"""Maximum length of the JSON list that encodes a score. The list has the end of the key, then the score's fields."""
MAX_BYTES = 2**13
"""Maximum size of an encoded score, in bytes: enough for a reason of 500 characters and 60 parts with short names."""
CHECK = 8
"""Number of characters from the end of the key that are stored with a score, to detect a score that was stored
for another key."""

CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tabs and line feeds, and characters that change the direction of text."""


def encode(key: str, score: Score) -> bytes:
    """Return the bytes to store under `key` for a score with the status `ok`."""
    fields = score.value, score.source, score.reason, score.label_mass, score.parts, score.agreement
    record: list[Any] = [key[-CHECK:], *fields]
    while record[-1] in (None, ""):
        record.pop()
    return json.dumps(record, separators=(",", ":")).encode()


def decode(key: str, data: bytes) -> Score | None:
    """Return the score in `data`; None if `data` is not a valid score for `key`.

    -0.0 becomes 0.0, and `CONTROLS` in texts are escaped.
    """
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, list) or not 3 <= len(record) <= MAX_FIELDS:
        return None
    check, value, source, reason, label_mass, parts, agreement = record + [None] * (MAX_FIELDS - len(record))
    if check != key[-CHECK:]:
        return None
    if not (is_finite(value) and isinstance(source, str) and isinstance(reason, (str, type(None)))):
        return None
    if not all(share is None or (is_finite(share) and 0 <= share <= 1) for share in (label_mass, agreement)):
        return None
    if not (parts is None or _are_parts(parts)):
        return None
    label_mass, agreement = (share if share is None else share + 0.0 for share in (label_mass, agreement))
    parts = parts and {_escape(name): part + 0.0 for name, part in parts.items()}
    return Score(
        float(value) + 0.0, "ok", _escape(reason or ""), _escape(source), True, 0.0, label_mass, parts, agreement
    )


def _are_parts(parts: Any) -> bool:
    return isinstance(parts, dict) and all(is_finite(part) for part in parts.values())


def _escape(text: str) -> str:
    return CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)
