"""Error replies as JSON: `error` is the message with a remedy, `field` names the field or setting, or is null.

| exception | reply |
| --- | --- |
| `ApiError` | its own status |
| `UnknownSourceError` | 404, with the known names |
| `BudgetError` | 503 without Retry-After, with `BUDGET_HEADER`, which means that a retry cannot help |
| any other `ConfigError` | 400 |
| `ServiceError` | 503 with Retry-After |
| `AbandonedError` | 499, nginx' status for a client that has closed its connection |
| `RecursionError` | 400, because only a body can be nested so deeply |
| an HTTP error of Flask | its own status |
| anything else | 500, logged |
"""

from __future__ import annotations

import logging
import re

from flask import Flask, Response, current_app, jsonify, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from rewardstack.cause import Cause
from rewardstack.core.wire import BUDGET_HEADER, CAUSE_HEADER
from rewardstack.errors import BudgetError, ConfigError, ServiceError, UnknownSourceError
from rewardstack_rules.scoring.cancellation import AbandonedError

CLIENT_GONE = 499
MAX_REASON_PHRASE = 200
"""Maximum number of characters of the message in the status line."""
NOT_PRINTABLE = re.compile(r"[^ -~]")
"""Matches characters that the status line cannot contain."""
RETRY_AFTER = 1
"""Value of the Retry-After header in the replies of the function `unavailable`, in seconds."""
BROWSER_PATHS = frozenset({"/"})
"""Paths that people open in a browser, which can ask for a password but cannot send a bearer token."""
PASSWORD = 'Basic realm="rewardstack: any name, and an API key as the password", charset="UTF-8"'
"""Value of the header WWW-Authenticate with which a browser asks for a password."""

log = logging.getLogger(__name__)


class ApiError(Exception):
    """Raised to refuse a request.

    Args:
        status: the HTTP status.
        message: what is wrong, and what to do about it.
        field: the invalid field of the request; None if there is none.
        retry_after: seconds after which to try again; None for no Retry-After header.
    """

    def __init__(self, status: int, message: str, field: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.retry_after = retry_after


def install(app: Flask) -> None:
    """Make `app` reply to exceptions as the table of this module describes."""
    app.register_error_handler(ApiError, _refusal)
    app.register_error_handler(UnknownSourceError, lambda error: error_reply(404, str(error), error.field, error.cause))
    app.register_error_handler(BudgetError, _over_budget)
    app.register_error_handler(ConfigError, lambda error: error_reply(400, str(error), error.field, error.cause))
    app.register_error_handler(ServiceError, lambda error: unavailable(str(error), error.cause))
    app.register_error_handler(
        AbandonedError, lambda _: error_reply(CLIENT_GONE, "the client has gone; its samples are dropped")
    )
    app.register_error_handler(RequestEntityTooLarge, lambda _: _too_large())
    app.register_error_handler(RecursionError, lambda _: error_reply(400, "the body is nested too deeply", "body"))
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _internal_error)


def error_reply(status: int, message: str, field: str | None = None, cause: Cause | None = None) -> Response:
    """Return an error reply with the message in its body and its status line; the cause, if any, is in a header."""
    response = jsonify(error=message, field=field)
    if cause is not None:
        response.headers[CAUSE_HEADER] = cause.value
    response.status = _status_line(status, message)
    if status == 401:
        response.headers["WWW-Authenticate"] = PASSWORD if request.path in BROWSER_PATHS else "Bearer"
    return response


def _refusal(error: ApiError) -> Response:
    response = error_reply(error.status, str(error), error.field)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def _over_budget(error: BudgetError) -> Response:
    response = error_reply(503, str(error), error.field, error.cause)
    response.headers[BUDGET_HEADER] = error.field or "spent"  # clients check only whether the header is present
    return response


def unavailable(message: str, cause: Cause | None, **content: object) -> Response:
    """Return a 503 reply with a Retry-After header."""
    response = jsonify(error=message, field=None, **content)
    response.headers[CAUSE_HEADER] = (cause or Cause.OTHER).value
    response.status = _status_line(503, message)
    response.headers["Retry-After"] = str(RETRY_AFTER)
    return response


def _status_line(status: int, message: str) -> str:
    """Return the status line with the message as its reason phrase, because trainers log the phrase, not the body."""
    return f"{status} {NOT_PRINTABLE.sub('?', message)[:MAX_REASON_PHRASE]}"


def _too_large() -> Response:
    return error_reply(413, "the body is too long; send fewer samples, or raise MAX_BODY_BYTES on the server", "body")


def _http_error(error: HTTPException) -> Response:
    if error.code == 404:
        return error_reply(404, f"there is no endpoint {request.path!a}; available: {_endpoints()}", "path")
    response = error_reply(error.code or 500, _describe(error))
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def _describe(error: HTTPException) -> str:
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        methods = " or ".join(sorted({*error.valid_methods} - {"HEAD", "OPTIONS"}))
        return f"{request.method} is not allowed for {request.path!a}; use {methods}"
    return error.description or error.name


def _endpoints() -> str:
    rules = {rule.rule for rule in current_app.url_map.iter_rules()}
    return ", ".join(sorted(rules)).replace("<", "{").replace(">", "}")


def _internal_error(error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return error_reply(500, f"internal error: {type(error).__name__}; the server's log has more")
