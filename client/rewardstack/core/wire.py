"""The wire format: how samples and scores stand in JSON, in `/v1/score` and in jobs and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.score import STATUSES, Item, Score, Usage

Record = dict[str, Any]
"""An object of JSON."""
MOST_COUNTED = 10**15
"""Requests or tokens, beyond which no score takes any."""
REFUSED_FOR_GOOD = "X-Reward-Budget"
"""Header of a 503 that means it for good, for what the run may spend is spent; names the variable that says so."""
SERVERS_OWN = ("url", "api_key", "path")
"""Fields of `extra_info`, or endings of their names after `_`, that only the server's own settings may give."""
ENDINGS = tuple(f"_{word}" for word in SERVERS_OWN)
NOT_TAKEN = "URLs, keys and paths are not taken over HTTP; leave it out"
"""What is said of such a field."""


def is_servers_own(name: object) -> bool:
    """Whether only the server's own settings may give a field of `extra_info` of this name: nothing of it is sent."""
    return name in SERVERS_OWN or str(name).endswith(ENDINGS)


def sample_record(data_source: str, item: Item, extra: Mapping[str, Any]) -> Record:
    """Return a sample that is to be scored, with what is sent of its `extra_info`."""
    return {
        "data_source": data_source,
        "solution_str": item.solution,
        "ground_truth": list(item.references),
        "extra_info": extra,
    }


def score_record(score: Score) -> Record:
    """A score with all that is known of it; `usage` is there where it took something."""
    record = {
        "value": score.value,
        "status": score.status,
        "reason": score.reason,
        "source": score.source,
        "cached": score.cached,
        "latency_ms": score.latency_ms,
        "details": score.details if score.parts is None else {**score.details, "parts": score.parts},
    }
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
    """Return the scores that a server has sent; raise ValueError, KeyError or TypeError if one is malformed."""
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
    )


def read_usage(record: Mapping[str, Any]) -> Usage | None:
    """Return the usage that a server has sent with a score, None if there is none; raise as `read_scores` does."""
    said = record.get("usage")
    if said is None:
        return None
    counts = [said[name] for name in Usage._fields]
    if not all(type(count) is int and abs(count) < MOST_COUNTED for count in counts):
        raise ValueError(counts)
    return Usage(*counts)
