"""A line of JSON for everything the server logs, and one for every request, which never holds what the request held.

A request's line: `request_id` (the caller's `X-Request-Id`, else one made here; the reply has it too), `method`,
`endpoint` (the pattern, not the path), `code`, `items`, `statuses` (how many of each), `ms`.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections import Counter
from typing import Any

from flask import Flask, Response, g, request

HEADER = "X-Request-Id"
GIVEN = re.compile(r"^[A-Za-z0-9._-]{1,128}\Z")
QUIET = frozenset({"/health", "/ready", "/metrics"})
"""Endpoints that are asked all the time; a line is written where they do not answer 200."""

log = logging.getLogger(__name__)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; what stands under `fields` in its `extra` becomes keys of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": JsonFormatter}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"level": "INFO", "handlers": ["stderr"]},
    "loggers": {
        "gunicorn.error": {"level": "INFO", "handlers": [], "propagate": True},
        "gunicorn.access": {"level": "CRITICAL", "handlers": [], "propagate": False},
    },
}
"""For `logging.config.dictConfig` and gunicorn."""


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
