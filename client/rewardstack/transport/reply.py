"""A service's answer, however it came: its body, or the error of the tree that its status means."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardstack.core.wire import REFUSED_FOR_GOOD
from rewardstack.errors import OverloadError, RejectedError, ReplyError

MESSAGE_CHARACTERS = 300
"""How much of a server's complaint is repeated."""
OVERLOADED = (408, 429, 502, 503, 504)
"""Statuses with which a service refuses for now (`OverloadError`); it is asked again until the deadline."""


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


def body_of(reply: Reply) -> bytes:
    """The body of a 2xx reply.

    Raises:
        OverloadError: 408, 429, 502, 503 or 504.
        RejectedError: a redirect, or any other 4xx; a 503 that is meant for good.
        ReplyError: any other 5xx.
    """
    if 200 <= reply.status < 300:
        return reply.data
    complaint = complaint_in(reply.data)
    message = f"{reply.url} answered {reply.status}{': ' if complaint else ''}{complaint}"
    if reply.status in OVERLOADED and REFUSED_FOR_GOOD not in reply.headers:
        raise OverloadError(message, _retry_after(reply.headers.get("Retry-After", "")))
    if reply.status < 500 or reply.status == 503:
        raise RejectedError(message, reply.status)
    raise ReplyError(message)


def complaint_in(data: bytes) -> str:
    """What the body of a refusal says, in one line: its `error` where it is JSON, its title where it is a page."""
    text = data[: 8 * MESSAGE_CHARACTERS].decode("utf-8", "replace")
    try:
        record: Any = json.loads(text)
    except ValueError:
        record = None
    if isinstance(record, dict):
        complaint = record.get("error") or record.get("message") or record
        text = complaint if isinstance(complaint, str) else json.dumps(complaint)
    elif text.lstrip().startswith("<"):
        text = _of_page(text)
    return " ".join(text.split())[:MESSAGE_CHARACTERS]


def _of_page(text: str) -> str:
    """What a page in HTML, as proxies and other services' servers send it, says: its title, or all but its tags."""
    title = re.search(r"(?i)<title[^<>]*>([^<]+)", text)
    return html.unescape(title[1] if title else re.sub(r"<[^<>]*>", " ", text))


def _retry_after(value: str) -> float:
    """Seconds; the header's other form, a date, is rare among the servers here and read as none."""
    return float(value) if value.isascii() and value.isdigit() else 0.0
