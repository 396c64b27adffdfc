"""Audit log: a line when a job is submitted, when it ends, and when it is canceled.

Each line has the tenant, which is a hash of the API key (`rewardstack.cache.key.tenant_of`).
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from flask import g, has_request_context, request

from rewardstack_rules.jobs.keys import JobKeys

MOST_SOURCES = 10
LONGEST_SOURCE = 64
"""Maximum number of characters of a `data_source` that are logged: clients choose it, and it may be a long text."""

log = logging.getLogger(__name__)


def tell(event: str, keys: JobKeys, **fields: Any) -> None:
    """Log an event of a job; within a request, add the request's id and the client's address.

    Args:
        event: `submitted`, `finished`, `failed` or `canceled`.
        keys: the job's keys.
        fields: additional fields of the line.
    """
    asked = {"request_id": g.request_id, "client": _client()} if has_request_context() else {}
    line = {"event": event, "job_id": keys.job_id, "tenant": keys.tenant, **fields, **asked}
    log.info("job", extra={"fields": line})


def commonest(sources: Counter[str]) -> dict[str, int]:
    """Return the number of samples of each of the most common sources."""
    return {name[:LONGEST_SOURCE]: count for name, count in sources.most_common(MOST_SOURCES)}


def _client() -> str:
    """Return the client's address as the gateway reports it; without a gateway, a claimed address or the peer's."""
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or request.remote_addr or ""
