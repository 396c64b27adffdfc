"""Audit log of jobs: one line when a job is submitted, finishes, fails or is canceled.

Each line has the tenant, which is a hash of the API key (`rewardstack.cache.key.tenant_of`).
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from flask import g, has_request_context, request

from rewardstack_rules.jobs.keys import JobKeys

MAX_SOURCES = 10
MAX_SOURCE_LENGTH = 64
"""Maximum number of characters of a `data_source` in the log. Clients choose the text, so it may be long."""

log = logging.getLogger(__name__)


def log_event(event: str, keys: JobKeys, **fields: Any) -> None:
    """Log an event of a job. Within a request, also log the request's id and the client's address.

    Args:
        event: `submitted`, `finished`, `failed` or `canceled`.
        keys: the job's keys.
        fields: additional fields of the line.
    """
    origin = {"request_id": g.request_id, "client": _client()} if has_request_context() else {}
    line = {"event": event, "job_id": keys.job_id, "tenant": keys.tenant, **fields, **origin}
    log.info("job", extra={"fields": line})


def most_common_sources(sources: Counter[str]) -> dict[str, int]:
    """Return the most common sources, each with its number of samples."""
    return {name[:MAX_SOURCE_LENGTH]: count for name, count in sources.most_common(MAX_SOURCES)}


def _client() -> str:
    """Return the client's address as the gateway reports it. Without a gateway, the client can forge it."""
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or request.remote_addr or ""
