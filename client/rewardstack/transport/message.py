"""A request to a service, independent of the server that receives it, and the typed error for a reply.

`faults` says what each error means.
"""

from __future__ import annotations

import email.utils
import html
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.wire import BUDGET_HEADER, CAUSE_HEADER
from rewardstack.errors import OverloadError, RejectedError, ReplyError, ServiceError
from rewardstack.transport.faults import OVERLOADED

MAX_MESSAGE = 300
"""Maximum number of characters of a server's error message that are quoted."""
PATH_FIELD = "path"
"""The `field` in the reward server's error for an unknown path (404)."""
NO_QUOTA = "insufficient_quota"
"""Error code of an account without quota; retries do not help."""

MAX_BODY = 2**16
"""Maximum number of bytes of an error that are read."""
OVERLOAD_STATUS = 529
"""Status of an `OverloadError` for an overload that a proxy reports with another status."""
OVERLOAD_CODES = frozenset(
    {
        *("overloaded_error", "rate_limit_error", "rate_limit_exceeded", "rate_limit_reached", "engine_overloaded"),
        *("engine_overloaded_error", "server_overloaded", "service_unavailable", "too_many_requests"),
        *("throttlingexception", "serviceunavailableexception", "modelnotreadyexception", "throttling"),
        *("resource_exhausted", "unavailable", "429", "503", "529"),
    }
)
"""Values of an error's `type`, `code` and `status`, in lower case, for an overload, whatever the HTTP status is."""
OVERLOAD_PHRASES = re.compile(
    r"overloaded|over capacity|at capacity|capacity exceeded|rate.?limit|too many requests|throttl"
    r"|high demand|server (?:is )?busy|temporarily unavailable|service unavailable|currently unavailable",
    re.IGNORECASE,
)
"""Phrases of providers and proxies for an overload; read only in errors with a status from 500 or in a 2xx reply."""
_CODE_NAMES = ("type", "code", "status", "__type", "error_type", "error_code")

Read = Callable[[bytes], Any]
"""Parses a reply's body; raises ReplyError if it is invalid."""
GATEWAY = "X-Gateway"
"""Header of all replies through our gateway: how it selects the replica of a request without `REPLICA`."""
AFFINITY = "X-Prompt-Affinity"
"""Header that selects the replica if the gateway's balancing is `affinity`."""
REPLICA = "X-Replica"
"""Header that selects the replica with any balancing."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
Admit = Callable[[], Awaitable[None]]
"""Called before each attempt to send a message; an exception ends the call."""


class Message(NamedTuple):
    """A request, independent of the endpoint that receives it.

    Args:
        method: `GET` or `POST`.
        path: URL path, which begins with a slash.
        body: JSON, or None.
        headers: HTTP headers in addition to the service's headers.
        admit: called before each attempt; raises an exception if the attempt is not allowed. None to allow all.
        read: parses a reply's body, and raises ReplyError if it is invalid; None to return the body.
        is_optional: whether servers may lack the path. Then a rejection by all endpoints, such as a 404, is final. For
            other messages, a 404 is retried once, because a model may still be loading.
        no_retry: whether an invalid reply ends the call if no other endpoint is left.
        probe: a body that is cheap for the service; sent first to an endpoint that recently did not accept requests.
            None for no such body.
        is_hedged: whether a stuck request is hedged even if there is only one endpoint.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = NO_HEADERS
    admit: Admit | None = None
    read: Read | None = None
    is_optional: bool = False
    no_retry: bool = False
    probe: bytes | None = None
    is_hedged: bool = False

    @property
    def is_cheap(self) -> bool:
        """Whether the request costs the server next to nothing, because it has no body."""
        return self.body is None

    @property
    def may_be_repeated(self) -> bool:
        """Whether a stuck request may be sent again to the same endpoint."""
        return self.is_hedged or self.is_cheap

    @property
    def probe_message(self) -> Message | None:
        """The message with `probe` as its body, to test whether a server answers; None if there is no `probe`."""
        return None if self.probe is None else self._replace(body=self.probe, admit=None, read=None, probe=None)


HEALTH = Message("GET", "/health")


class Reply(NamedTuple):
    """An HTTP reply of any status.

    Args:
        url: URL of the request, for errors.
        status: HTTP status.
        headers: HTTP headers by name, case-insensitive.
        data: the reply's body.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes


def get_body(reply: Reply) -> bytes:
    """Return the body of a 2xx reply.

    Raises:
        OverloadError, RejectedError, ReplyError: the reply has another status.
    """
    if 200 <= reply.status < 300:
        return reply.data
    raise to_error(reply)


def parse_reply(reply: Reply, read: Read | None) -> Any:
    """Return the body of a 2xx reply, parsed by `read` unless that is None.

    Raises:
        OverloadError, RejectedError, ReplyError: the reply has another status, or its body is invalid or has an error.
    """
    data = get_body(reply)
    if read is None:
        return data
    try:
        return read(data)
    except ReplyError as error:
        raise _to_invalid_reply_error(reply, error) from error


def to_error(reply: Reply) -> ServiceError:
    """Return the typed error for the status of a reply."""
    record = _read_object(reply.data)
    complaint = error_message_in(reply.data)
    cause = Cause.read(reply.headers.get(CAUSE_HEADER))
    field = str(record.get("field") or "") if record else ""
    if reply.status == 404 and field == PATH_FIELD:
        complaint = complaint.partition(";")[0]  # without the list of the server's endpoints
    message = f"{reply.url} returned {reply.status}{': ' if complaint else ''}{complaint.rstrip('.')}"
    status, text = reply.status, reply.data[:MAX_BODY].decode("utf-8", "replace")
    if _is_out_of_quota(record):
        return RejectedError(message, status, complaint=complaint, text=text)
    if BUDGET_HEADER not in reply.headers and (status in OVERLOADED or is_overload(status, reply.data)):
        retry_after = _read_retry_after(reply.headers.get("Retry-After", ""))
        return OverloadError(message, retry_after, status if status in OVERLOADED else OVERLOAD_STATUS, cause=cause)
    if status < 500 or status == 503:
        # A server that names an invalid field has read the request, so other endpoints would reject it, too.
        is_misplaced = (status < 400 or status in (401, 403, 404)) and not field
        return RejectedError(
            message, status, cause=cause, is_misplaced=is_misplaced, complaint=complaint, text=text, field=field
        )
    return ReplyError(message, status, cause=cause)


def is_overload(status: int, data: bytes) -> bool:
    """Return whether an error means that a server is overloaded, by its type or code, or by its words.

    Args:
        status: HTTP status of the error.
        data: body of the error.
    """
    if any(code in OVERLOAD_CODES for code in _error_codes(data)):
        return True
    return not 300 <= status < 500 and OVERLOAD_PHRASES.search(data[:MAX_BODY].decode("utf-8", "replace")) is not None


def _error_codes(data: bytes) -> Iterator[str]:
    """Yield the types and codes in the JSON of an error, in lower case."""
    try:
        values: list[Any] = [json.loads(data)] if len(data) <= MAX_BODY else []
    except (ValueError, RecursionError):
        return
    while values:
        value = values.pop()
        if isinstance(value, dict):
            yield from (str(value[name]).lower() for name in _CODE_NAMES if isinstance(value.get(name), (str, int)))
            values += [value[name] for name in ("error", "errors") if name in value]
        elif isinstance(value, list):
            values += value


def _to_invalid_reply_error(reply: Reply, error: ReplyError) -> ServiceError:
    """Return the typed error for an invalid 2xx reply.

    The HTTP status or quota code in the body's `error` determines the type. If the body has neither, the result is a
    ReplyError.
    """
    record = _read_object(reply.data)
    if record and record.get("error"):
        code = str(record["error"].get("code")) if isinstance(record["error"], dict) else ""
        if code.isascii() and code.isdigit() and 400 <= int(code) < 600:
            return to_error(reply._replace(status=int(code)))
        if _is_out_of_quota(record):
            complaint = error_message_in(reply.data)
            return RejectedError(f"{reply.url} returned {reply.status}: {complaint}", reply.status, complaint=complaint)
        if is_overload(reply.status, reply.data):
            return to_error(reply._replace(status=OVERLOAD_STATUS))
    if reply.data.lstrip()[:1] == b"<":
        title = error_message_in(reply.data)
        return ReplyError(
            f"{reply.url} returned {reply.status} with a page{f' ({title})' if title else ''} instead of JSON: a proxy "
            "or another service answers there; correct the URL, or name the host in NO_PROXY",
            cause=error.cause,
        )
    start = error_message_in(reply.data) or (repr(reply.data[:80]) if reply.data else "the body is empty")
    why = f"{reply.url} returned {reply.status}, but the reply cannot be read: {error}: {start}"
    return ReplyError(why, cause=error.cause)


def _is_out_of_quota(record: Mapping[str, Any] | None) -> bool:
    error = record.get("error") if record else None
    return isinstance(error, dict) and NO_QUOTA in (error.get("code"), error.get("type"))


def _read_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; None if the body is not an object or is larger than 64 KiB."""
    if data.lstrip()[:1] != b"{" or len(data) > MAX_BODY:
        return None
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def error_message_in(data: bytes) -> str:
    """Return the error message in a body as one line.

    The message is the `error` or `message` of a JSON object, the title of an HTML page, or the start of other text.
    """
    text = data[: 8 * MAX_MESSAGE].decode("utf-8", "replace")
    record = _read_object(data)
    if record is not None:
        complaint = record.get("error") or record.get("message") or record
        text = complaint if isinstance(complaint, str) else json.dumps(complaint)
    elif text.lstrip().startswith("<"):
        text = _page_title(text)
    return " ".join(text.split())[:MAX_MESSAGE]


def _page_title(text: str) -> str:
    """Return the title of an HTML page, or its text without tags."""
    title = re.search(r"(?i)<title[^<>]*>([^<]+)", text)
    return html.unescape(title[1] if title else re.sub(r"<[^<>]*>", " ", text))


def _read_retry_after(value: str) -> float:
    """Return the seconds in a Retry-After header, which is a number (with or without a fraction) or a date; else 0."""
    if re.fullmatch(r"\d{1,9}(?:\.\d{0,9})?", value, re.ASCII):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
