"""Who had what scored when: a line in the log when a job is taken, when it ends, and when it is canceled.

Whose it is stands there as the tenant, which is a hash of the API key (`rewardstack.cache.key.tenant_of`).
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from flask import g, has_request_context, request

from rewardstack_rules.jobs.keys import JobKeys

MOST_SOURCES = 10
LONGEST_SOURCE = 64
"""Characters of a source that are told: it is the client's to choose, and may be a text."""

log = logging.getLogger(__name__)


def tell(event: str, keys: JobKeys, **fields: Any) -> None:
    """Logs what became of a job, and by which request where it was one.

    Args:
        event: `submitted`, `finished`, `failed` or `canceled`.
        keys: of the job.
        fields: what else is known of it.
    """
    asked = {"request_id": g.request_id, "client": _client()} if has_request_context() else {}
    line = {"event": event, "job_id": keys.job_id, "tenant": keys.tenant, **fields, **asked}
    log.info("job", extra={"fields": line})


def commonest(sources: Counter[str]) -> dict[str, int]:
    """How many samples a job has of each source, of those it has most of."""
    return {name[:LONGEST_SOURCE]: count for name, count in sources.most_common(MOST_SOURCES)}


def _client() -> str:
    """The address that the gateway saw; without a gateway what the client claims, else where it comes from."""
    return request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip() or request.remote_addr or ""
