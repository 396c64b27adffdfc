"""What a reply means: its status, and a body that cannot be read."""

from __future__ import annotations

import json
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.core.wire import BUDGET_HEADER, CAUSE_HEADER
from rewardstack.errors import OverloadError, RejectedError, ReplyError
from rewardstack.transport import message
from rewardstack.transport.message import Reply, get_body, parse_reply, to_error
from tests.support.table import Table

URL = "http://judge:8000/v1/chat/completions"
NOW = 1_700_000_000.0
QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
STATUSES: list[tuple[type[Exception], tuple[int, ...]]] = [
    (OverloadError, (408, 425, 429, 502, 503, 504, *range(520, 525), 529)),
    (RejectedError, (301, 400, 401, 403, 404, 405, 409, 413, 418, 422, 424)),
    (ReplyError, (500, 501, 505, 507, 525, 599)),
]
BODIES: list[tuple[Any, type[Exception], int, str]] = [
    (b"", ReplyError, 0, "the body is empty"),
    (b"<html><title>Under maintenance</title></html>", ReplyError, 0, "Under maintenance"),
    (b"hello", ReplyError, 0, "hello"),
    ({"error": {"message": "rate limited", "code": 429}}, OverloadError, 429, "rate limited"),
    ({"error": {"message": "upstream", "code": "502"}}, OverloadError, 502, "upstream"),
    ({"error": {"message": "no such model", "code": 404}}, RejectedError, 404, "no such model"),
    ({"error": {"message": "boom", "code": 500}}, ReplyError, 500, "boom"),
    ({"error": "boom"}, ReplyError, 0, "boom"),
    (QUOTA, RejectedError, 200, "quota"),
]


def read(data: bytes) -> Any:
    """The scores in a body."""
    try:
        return json.loads(data)["scores"]
    except (ValueError, KeyError, TypeError):
        raise ReplyError("it is no list of scores") from None


def test_statuses(table: Table) -> None:
    """Each status means what its row of the table says, and the reason names the endpoint and its words."""
    for kind, statuses in STATUSES:
        for status in statuses:
            with table.case(str(status)):
                with pytest.raises(kind, match=f"{URL} returned {status}: boom") as raised:
                    get_body(Reply(URL, status, {}, b'{"error": "boom"}'))
                assert (kind, status) == (type(raised.value), raised.value.status)  # type: ignore[attr-defined]


def test_unreadable_bodies(table: Table) -> None:
    """A 2xx that cannot be read is an ill reply, unless it holds an error of a known status; the reason shows it."""
    for body, kind, status, words in BODIES:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with table.case(str(data)):
            with pytest.raises(kind, match=words) as raised:
                parse_reply(Reply(URL, 200, {}, data), read)
            assert (kind, status) == (type(raised.value), raised.value.status)  # type: ignore[attr-defined]
            assert str(raised.value).startswith(URL)


def test_readable_body() -> None:
    """A body that can be read is a result, whatever else it holds."""
    assert [1] == parse_reply(Reply(URL, 200, {}, b'{"scores": [1], "error": "a warning"}'), read)


@pytest.mark.parametrize(("body", "status"), [({"error": "x", "field": "data_source"}, 404), (QUOTA, 403), ({}, 400)])
def test_the_requests_own_fault(body: Any, status: int) -> None:
    """No other endpoint is asked where the server names a field, has no quota left, or finds the request malformed."""
    with pytest.raises(RejectedError) as raised:
        get_body(Reply(URL, status, {}, json.dumps(body).encode()))
    assert not raised.value.is_misplaced


@pytest.mark.parametrize("status", [302, 401, 403, 404])
def test_another_endpoint_may_differ(status: int) -> None:
    """A key, path or model that one endpoint does not know, another may."""
    with pytest.raises(RejectedError) as raised:
        get_body(Reply(URL, status, {}, b"{}"))
    assert raised.value.is_misplaced


def test_nothing_left_to_spend() -> None:
    """429 without quota and 503 without budget are final."""
    for status, headers, body in ((429, {}, QUOTA), (503, {BUDGET_HEADER: "spent"}, {})):
        with pytest.raises(RejectedError):
            get_body(Reply(URL, status, headers, json.dumps(body).encode()))


def test_causes(table: Table) -> None:
    """The status of an error says its cause, unless a header does."""
    statuses = {401: "refused_key", 403: "refused_key", 404: "rejected", 413: "too_long", 429: "overloaded"}
    for status, cause in {**statuses, 500: "server_error", 502: "overloaded", 503: "overloaded"}.items():
        for header, known in (("isolation_busy", "isolation_busy"), ("of a later version", cause), (None, cause)):
            with table.case(f"{status} {header}"):
                headers = {} if header is None else {CAUSE_HEADER: header}
                assert to_error(Reply(URL, status, headers, b"{}")).cause == known


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0", 0.0), ("", 0.0), ("soon", 0.0), (formatdate(NOW + 900, usegmt=True), 900.0)],
)
def test_retry_after(header: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The header is a number of seconds or a date; anything else is no wish."""
    monkeypatch.setattr(message, "time", SimpleNamespace(time=lambda: NOW))
    with pytest.raises(OverloadError) as raised:
        get_body(Reply(URL, 503, {"Retry-After": header}, b""))
    assert raised.value.retry_after == seconds


def test_one_sentence() -> None:
    """The period at the end of a server's message is left out, because a remedy may follow."""
    with pytest.raises(RejectedError, match="returned 404: no such model$"):
        get_body(Reply(URL, 404, {}, b'{"error": "no such model."}'))
