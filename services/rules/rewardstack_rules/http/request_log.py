"""A line in the log for every request, which never holds what the request held.

A request's line: `request_id` (the caller's `X-Request-Id`, else one made here; the reply has it too), `method`,
`endpoint` (the pattern, not the path), `code`, `items`, `statuses` (how many of each), `ms`.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import Counter

from flask import Flask, Response, g, request

HEADER = "X-Request-Id"
GIVEN = re.compile(r"^[A-Za-z0-9._-]{1,128}\Z")
QUIET = frozenset({"/health", "/ready", "/metrics"})
"""Endpoints that are asked all the time; a line is written where they do not answer 200."""

log = logging.getLogger(__name__)


def install(app: Flask) -> None:
    """Logs every request of `app`, refused ones too. It comes before all that can refuse a request."""
    app.before_request(_start)
    app.after_request(_finish)


def endpoint() -> str:
    """The current request's endpoint as its pattern, so that there are no more of them than the server has."""
    return request.url_rule.rule if request.url_rule else "unknown"


def _start() -> None:
    given = request.headers.get(HEADER, "")
    g.started = time.monotonic()
    g.request_id = given if GIVEN.match(given) else uuid.uuid4().hex
    g.statuses = Counter()


def _finish(response: Response) -> Response:
    response.headers[HEADER] = g.request_id
    if endpoint() not in QUIET or response.status_code != 200:
        fields = {
            "request_id": g.request_id,
            "method": request.method,
            "endpoint": endpoint(),
            "code": response.status_code,
            "items": sum(g.statuses.values()),
            "statuses": dict(g.statuses),
            "ms": round(1000 * (time.monotonic() - g.started), 1),
        }
        log.info("request", extra={"fields": fields})
    return response
