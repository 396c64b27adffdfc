"""Logging of the reward server and of job workers: one line of JSON per record."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Any

COLOR = re.compile(r"\x1b\[[0-9;]*m")
"""Matches the terminal codes for colors that Werkzeug writes into its messages."""


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; the items of `extra={"fields": ...}` become top-level keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": COLOR.sub("", record.getMessage()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_failed_start(log: Any, error: Exception) -> None:
    """Log in one line why the server cannot start. `make up` reads the cause from the field `exception`.

    Args:
        log: a standard logger, or gunicorn's logger.
        error: an error whose message names the invalid setting or file.
    """
    fields = {"exception": f"{type(error).__name__}: {error}"}
    log.error("the server cannot start", extra={"fields": fields})


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
"""Logging configuration for `logging.config.dictConfig` and gunicorn."""
