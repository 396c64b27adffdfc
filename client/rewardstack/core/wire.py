"""Convert samples and scores to and from JSON: the format of `/v1/score`, and of job results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.cause import Cause
from rewardstack.score import STATUSES, Item, Score, Usage
from rewardstack_verifier.transcript import AUTO, NONE

Record = dict[str, Any]
"""A JSON object."""
MAX_COUNT = 10**15
"""Exclusive upper bound on the requests or tokens of one score."""
BUDGET_HEADER = "X-Reward-Budget"
"""Header of a 503 reply to a run whose budget is spent; the client must not retry the request. The value of the header
names the setting of the budget."""
CAUSE_HEADER = "X-Reward-Cause"
"""Header of an error reply: the name of its cause."""
SERVER_FIELDS = ("url", "api_key", "path")
"""Fields of `extra_info` that only the settings of the server may define, not a client. The same holds for fields that
end with `_url`, `_api_key` or `_path`."""
ENDINGS = tuple(f"_{word}" for word in SERVER_FIELDS)
SERVER_FIELD_ERROR = "URLs, keys and paths are not accepted over HTTP; remove the field"
"""The error for a request with a field of `SERVER_FIELDS`."""


def is_server_field(name: object) -> bool:
    """Return whether only the server's settings may set this field of `extra_info`; clients never send such a field."""
    return name in SERVER_FIELDS or str(name).endswith(ENDINGS)


def sample_record(data_source: str, item: Item, extra: Mapping[str, Any], whole: Any = None) -> Record:
    """Return a sample as JSON.

    Args:
        data_source: the `data_source` to send.
        item: the sample.
        extra: the part of its `extra_info` to send.
        whole: the response with all its turns; None to send only the last turn, which the server must not split again.
    """
    is_split = item.messages is not None or item.transcript != AUTO
    transcript = item.transcript if whole is not None else NONE
    return {
        "data_source": data_source,
        "solution_str": item.solution if whole is None else whole,
        "ground_truth": item.references[0] if len(item.references) == 1 else list(item.references),
        "extra_info": {**extra, "transcript": transcript} if is_split else extra,
    }


def score_record(score: Score) -> Record:
    """Return a score as JSON; `cause`, `agreement`, `field`, `volatile` and `usage` are present only if set."""
    record = {
        "value": score.value,
        "status": score.status,
        "reason": score.reason,
        "source": score.source,
        "cached": score.cached,
        "latency_ms": score.latency_ms,
        "details": score.details if score.parts is None else {**score.details, "parts": score.parts},
    }
    if score.cause is not None:
        record["cause"] = score.cause.value
    if score.agreement is not None:
        record["agreement"] = score.agreement
    if score.field:
        record["field"] = score.field
    if score.volatile:
        record["volatile"] = True
    if score.usage is not None:
        record["usage"] = score.usage._asdict()
    return record


def read_scores(records: Sequence[Mapping[str, Any]]) -> list[Score]:
    """Parse the scores from a server; raise ValueError, KeyError or TypeError if one is malformed."""
    return [_read_score(record) for record in records]


def _read_score(record: Mapping[str, Any]) -> Score:
    status, value = record["status"], record["value"]
    if status not in STATUSES:
        raise ValueError(status)
    scored = status in ("ok", "fallback")
    details = record.get("details") or {}
    return Score(
        float(value) if scored else None,
        status,
        str(record.get("reason", "")),
        str(record.get("source") or ""),
        cached=record.get("cached") is True,
        label_mass=float(details["label_mass"]) if details.get("label_mass") else None,
        parts={str(name): float(part) for name, part in details["parts"].items()} if details.get("parts") else None,
        agreement=None if record.get("agreement") is None else float(record["agreement"]),
        field=str(record.get("field") or ""),
        usage=read_usage(record),
        volatile=record.get("volatile") is True,
        cause=Cause.read(record.get("cause")),
    )


def read_usage(record: Mapping[str, Any]) -> Usage | None:
    """Parse the usage in a score from a server; None if the score has no usage. See `read_scores` for the errors."""
    usage = record.get("usage")
    if usage is None:
        return None
    counts = [usage[name] for name in Usage._fields]
    if not all(type(count) is int and abs(count) < MAX_COUNT for count in counts):
        raise ValueError(counts)
    return Usage(*counts)
