"""What a reply means: the one table that says whether a reply is a result, may be had elsewhere or later, or is final.

| reply | error | what the pool does |
| --- | --- | --- |
| readable 2xx | none | success |
| no connection, a lost one, silence | `UnreachableError` | another endpoint at once; else wait for its end |
| `LIMITING`, `DOWN`, 408, 425 | `OverloadError` | another endpoint at once; else wait, until the deadline |
| 500 and other 5xx; a 2xx that cannot be read | `ReplyError` | another endpoint at once; else a few tries |
| 401, 403, 404, a redirect | `RejectedError`, `is_misplaced` | another endpoint at once; else final |
| any other 4xx, no quota left, no budget left | `RejectedError` | final |
"""

from __future__ import annotations

import email.utils
import html
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rewardstack.core.wire import REFUSED_FOR_GOOD
from rewardstack.errors import OverloadError, RejectedError, ReplyError, ServiceError, UnreachableError

MESSAGE_CHARACTERS = 300
"""How much of a server's complaint is repeated."""
LIMITING = frozenset({429, 503, 529})
"""The server is there and takes no more for now: they lower its limit, and eject it after ten without a success."""
DOWN = frozenset({502, 504, *range(520, 525)})
"""A gateway found no server behind it: they count toward ejection like a lost connection."""
STEERED = frozenset({*range(520, 525), 529})
"""Our gateway passes them on from one of its servers, and says none itself: another one may take the request."""
OVERLOADED = LIMITING | DOWN | {408, 425}
"""Statuses with which a service refuses for now (`OverloadError`); it is asked again until the deadline."""
NO_QUOTA = "insufficient_quota"
"""The code of an account that has nothing left: no waiting brings it back."""

Read = Callable[[bytes], Any]
"""Makes a result of a reply's body; raises ReplyError where it cannot be read."""


class Reply(NamedTuple):
    """An answer, whatever its status.

    Args:
        url: that was asked, as errors name it.
        status: of the answer.
        headers: by name, of any case.
        data: its body.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes


def is_down(error: ServiceError) -> bool:
    """Return whether an error means that no server is there: a lost connection, silence, a gateway without a server."""
    return isinstance(error, UnreachableError) or (isinstance(error, OverloadError) and error.status in DOWN)


def body_of(reply: Reply) -> bytes:
    """Return the body of a 2xx reply.

    Raises:
        OverloadError, RejectedError, ReplyError: what another status means.
    """
    if 200 <= reply.status < 300:
        return reply.data
    raise error_of(reply)


def result_of(reply: Reply, read: Read | None) -> Any:
    """Return what `read` makes of a 2xx reply's body; the body where it is None.

    Raises:
        OverloadError, RejectedError, ReplyError: what another status means, or a body that holds an error instead.
    """
    data = body_of(reply)
    if read is None:
        return data
    try:
        return read(data)
    except ReplyError as error:
        raise _unreadable(reply, error) from error


def error_of(reply: Reply) -> ServiceError:
    """Return the error that the status of a reply means."""
    record = _object(reply.data)
    complaint = complaint_in(reply.data)
    message = f"{reply.url} answered {reply.status}{': ' if complaint else ''}{complaint}"
    status = reply.status
    if _is_out_of_quota(record):
        return RejectedError(message, status)
    if status in OVERLOADED and REFUSED_FOR_GOOD not in reply.headers:
        return OverloadError(message, _retry_after(reply.headers.get("Retry-After", "")), status)
    if status < 500 or status == 503:
        # A server that names the field has read the request: it is the right one.
        is_misplaced = (status < 400 or status in (401, 403, 404)) and not (record and record.get("field"))
        return RejectedError(message, status, is_misplaced=is_misplaced)
    return ReplyError(message, status)


def _unreadable(reply: Reply, error: ReplyError) -> ServiceError:
    """Return what a 2xx reply means that cannot be read: the error that its body holds, if it holds one."""
    record = _object(reply.data)
    if record and record.get("error"):
        code = str(record["error"].get("code")) if isinstance(record["error"], dict) else ""
        if code.isascii() and code.isdigit() and 400 <= int(code) < 600:
            return error_of(reply._replace(status=int(code)))
        if _is_out_of_quota(record):
            return RejectedError(f"{reply.url} answered {reply.status}: {complaint_in(reply.data)}", reply.status)
    if reply.data.lstrip()[:1] == b"<":
        title = complaint_in(reply.data)
        return ReplyError(
            f"{reply.url} answered {reply.status} with a page{f' ({title})' if title else ''} instead of JSON: a proxy "
            "or another service answers there; correct the URL, or name the host in NO_PROXY"
        )
    start = complaint_in(reply.data) or (repr(reply.data[:80]) if reply.data else "the body is empty")
    return ReplyError(f"{reply.url} answered {reply.status}, unreadable: {error}: {start}")


def _is_out_of_quota(record: Mapping[str, Any] | None) -> bool:
    error = record.get("error") if record else None
    return isinstance(error, dict) and NO_QUOTA in (error.get("code"), error.get("type"))


def _object(data: bytes) -> dict[str, Any] | None:
    """Return the object that a body of moderate length holds."""
    if data.lstrip()[:1] != b"{" or len(data) > 2**16:
        return None
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def complaint_in(data: bytes) -> str:
    """Return what the body of a refusal says, in one line: its `error` if it is JSON, its title if it is a page."""
    text = data[: 8 * MESSAGE_CHARACTERS].decode("utf-8", "replace")
    record = _object(data)
    if record is not None:
        complaint = record.get("error") or record.get("message") or record
        text = complaint if isinstance(complaint, str) else json.dumps(complaint)
    elif text.lstrip().startswith("<"):
        text = _text_of_page(text)
    return " ".join(text.split())[:MESSAGE_CHARACTERS]


def _text_of_page(text: str) -> str:
    """Return what a page in HTML, as proxies send it, says: its title, or all but its tags."""
    title = re.search(r"(?i)<title[^<>]*>([^<]+)", text)
    return html.unescape(title[1] if title else re.sub(r"<[^<>]*>", " ", text))


def _retry_after(value: str) -> float:
    """Return the seconds of the header, which is a number or a date; 0 for neither."""
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0
