"""Count and log requests. The log never contains the content of a request.

The line of a request has `request_id` (the caller's `X-Request-Id`, or a new id; it is also in the reply), `method`,
`endpoint` (the URL pattern, not the path), `code` (HTTP status), `items` (number of samples), `statuses` (samples by
status) and `ms` (milliseconds until the reply).
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import Counter

from flask import Flask, Response, g, request

from rewardstack_rules.metrics.counters import IN_PROGRESS, REQUESTS, SECONDS

HEADER = "X-Request-Id"
ID_PATTERN = re.compile(r"^[A-Za-z0-9._-]{1,128}\Z")
QUIET = frozenset({"/health", "/ready", "/metrics", "/v1/status"})
"""Endpoints that are polled. Requests to them are logged only if the reply is not 200."""

log = logging.getLogger(__name__)


def install(app: Flask) -> None:
    """Count and log all requests of `app`. Call this before installing hooks that refuse requests.

    Otherwise, refused requests would be neither counted nor logged.
    """
    app.before_request(_start)
    app.after_request(_finish)
    app.teardown_request(_end)


def _start() -> None:
    request_id = request.headers.get(HEADER, "")
    g.started = time.monotonic()
    g.request_id = request_id if ID_PATTERN.match(request_id) else uuid.uuid4().hex
    # Use the URL pattern, not the path, as the metric label, to limit the number of time series.
    g.endpoint = request.url_rule.rule if request.url_rule else "unknown"
    g.statuses = Counter()
    g.in_progress = g.endpoint not in QUIET
    if g.in_progress:
        IN_PROGRESS.inc()


def _finish(response: Response) -> Response:
    seconds = time.monotonic() - g.started
    REQUESTS.labels(g.endpoint, response.status_code).inc()
    SECONDS.labels(g.endpoint).observe(seconds)
    response.headers[HEADER] = g.request_id
    if g.endpoint not in QUIET or response.status_code != 200:
        fields = {
            "request_id": g.request_id,
            "method": request.method,
            "endpoint": g.endpoint,
            "code": response.status_code,
            "items": sum(g.statuses.values()),
            "statuses": dict(g.statuses),
            "ms": round(1000 * seconds, 1),
        }
        log.info("request", extra={"fields": fields})
    return response


def _end(error: BaseException | None) -> None:
    if g.get("in_progress"):
        IN_PROGRESS.dec()
