"""Admission control: limit the memory that the request bodies of a process need.

Each process has a budget of bytes. The bytes of a body are charged to the budget when they arrive, and released when
the request ends. A request gets 503 if a charge would exceed the budget while other requests hold charged bytes. If no
other request holds any, the charge may exceed the budget, so that every body up to the size limit can be read. The
first `FREE_BYTES` of each request are not charged, so that a flood of large bodies does not stop ordinary samples.

Parsed values need more memory than their text, so the JSON values of a body are counted before it is parsed. The
regular expression for counting cannot handle escapes, so `blank_escapes` replaces escapes first. An expression that
skips escapes would need a repeated group, and Python takes about 120 bytes of memory for each repetition of a group:
1 GB for a string of 8 MiB.
"""

from __future__ import annotations

import re
from itertools import islice
from threading import Lock
from typing import Any

from flask import Flask, g, request
from prometheus_client import Gauge
from werkzeug.exceptions import RequestEntityTooLarge

from rewardstack.errors import OverloadError
from rewardstack_rules.http.connection import BROKEN_BODY, SILENCE_SECONDS
from rewardstack_rules.http.errors import ApiError

FREE_BYTES = 2**16
"""Number of bytes of each request that are not charged. The total of these free bytes is limited, too, because
REWARD_THREADS and REWARD_WAITING_REQUESTS limit the number of requests that a process works on."""
VALUE_BYTES = 32
"""Bytes that are charged for one JSON value. A body is charged for its size or for its values, whichever is more.

With Python 3.11, parsing takes from 12 bytes of memory (for a `1`) to 129 bytes (for an entry of an object) per value.
It also takes three or four bytes per byte of text, or nine bytes if the text has a character beyond U+FFFF. So for most
bodies, one charged byte means about four bytes of memory.
"""
MAX_VALUES = 500_000
"""Maximum number of JSON values in one body, enough for a hundred thousand samples of four fields. Parsing that many
takes up to 65 MB, and blocks the process for half a second."""
ENCODING = "Content-Encoding"
PIECE = 2**18
"""Number of bytes of a body that are read at a time."""
JSON_TEXT = rb'"[^"]*"'
"""Regular expression for a JSON string without escapes."""

_TOKEN = re.compile(JSON_TEXT + rb"|([\[{,])")

HELD = Gauge(
    "rewardstack_body_bytes",
    "Bytes of request bodies in memory, without the first 64 KiB of each.",
    multiprocess_mode="livesum",
)


class Budget:
    """Limits the bytes that the requests of this process hold together.

    Args:
        limit: the limit, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._lock = Lock()

    def reserve(self, count: int, own: int) -> None:
        """Reserve bytes, or release them if `count` is negative.

        Args:
            count: number of bytes.
            own: bytes that the same request already holds.

        Raises:
            OverloadError: other requests hold too many bytes. The request's own bytes are released, so that one of
                several competing requests succeeds.
        """
        if not count:
            return
        with self._lock:
            if count > 0 and self._held > own and self._held + count > self._limit:
                self._held -= own
                HELD.dec(own)
                raise OverloadError(
                    f"other requests use up the {self._limit} bytes that this process has for request bodies "
                    "(REWARD_BYTES_IN_FLIGHT); try again, or send fewer samples per request"
                )
            self._held += count
            HELD.inc(count)


class Charge:
    """The share of the budget that one request holds.

    Args:
        budget: the budget of the request's process.
        max_bytes: maximum size of the body, in bytes.
    """

    def __init__(self, budget: Budget, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._budget = budget
        self._bytes = self._charged = 0

    @property
    def bytes(self) -> int:
        """Bytes that the request holds, including the first `FREE_BYTES`, which are not charged."""
        return self._bytes

    def add(self, count: int) -> None:
        """Charge bytes that the request is about to hold.

        Raises:
            OverloadError: the budget is used up; all bytes of the request are released.
        """
        before, self._charged = self._charged, 0
        self._bytes += count
        charged = max(0, self._bytes - FREE_BYTES)
        self._budget.reserve(charged - before, before)
        self._charged = charged

    def move(self, budget: Budget) -> None:
        """Move the charge to another budget.

        Raises:
            OverloadError: the other budget is used up.
        """
        budget.reserve(self._charged, 0)
        self._budget.reserve(-self._charged, self._charged)
        self._budget = budget

    def release(self) -> None:
        """Release all charged bytes."""
        self._budget.reserve(-self._charged, self._charged)
        self._bytes = self._charged = 0


def install(app: Flask, limit: int, max_bytes: int) -> None:
    """Set `g.charge` for each request of `app`, and release the charge at the end of the request.

    Args:
        app: the application of this process.
        limit: maximum number of bytes that all requests hold together.
        max_bytes: maximum size of one body, in bytes.
    """
    budget = Budget(limit)

    def begin() -> None:
        g.charge = Charge(budget, max_bytes)

    def end(_: Any) -> None:
        if "charge" in g:
            g.charge.release()

    app.before_request(begin)
    app.teardown_request(end)


def read_body() -> bytes:
    """Return the JSON body of the request. Charge it for its size or for its values, whichever is more.

    Raises:
        ApiError: 400 if the body cannot be read completely; 413 if it has too many values; 415 if it is compressed.
        OverloadError: the budget of the process is used up.
        RequestEntityTooLarge: the body is longer than the limit.
    """
    data = _read()
    count = check_value_count(data, MAX_VALUES, "body", "send fewer samples per request")
    g.charge.add(max(0, VALUE_BYTES * count - len(data)))
    return data


def _read() -> bytes:
    # If a body has no Content-Length, Flask silently truncates it at `max_content_length`. So allow one byte more than
    # the limit: if that byte arrives, the body is too long.
    request.max_content_length = g.charge.max_bytes + 1
    check_encoding()
    data = bytearray()
    try:
        while piece := request.stream.read(PIECE):
            g.charge.add(len(piece))
            data += piece
    except BROKEN_BODY as error:
        raise body_error(error) from error
    if len(data) > g.charge.max_bytes:
        raise RequestEntityTooLarge
    return bytes(data)


def check_encoding() -> None:
    """Raise ApiError (415) if the body is compressed."""
    encoding = request.headers.get(ENCODING, "identity")
    if encoding.lower() != "identity":
        raise ApiError(415, f"{ENCODING}: {encoding[:40]!r} is not supported; send the body uncompressed", ENCODING)


def body_error(error: Exception) -> ApiError:
    """Return the error reply for a request whose body could not be read; `error` is one of `BROKEN_BODY`."""
    if isinstance(error, TimeoutError):
        return ApiError(408, f"no byte of the body has arrived for {SILENCE_SECONDS:g} s; try again", "body")
    return ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body")


def check_value_count(data: bytes, limit: int, field: str, remedy: str) -> int:
    """Return the number of values in JSON without parsing it. The number may be too high; see `count_values`.

    Args:
        data: the JSON.
        limit: maximum number of values.
        field: name of the JSON in the error.
        remedy: what to do, for the error.

    Raises:
        ApiError: 413; the number is higher than `limit`.
    """
    count = count_values(data, limit)
    if count > limit:
        raise ApiError(413, f"{field} has more than {limit} values (strings, numbers, lists …); {remedy}", field)
    return count


def blank_escapes(data: bytes) -> bytes:
    """Replace escaped backslashes and escaped quotation marks with spaces.

    In the result, every quotation mark begins or ends a string.

    Args:
        data: JSON in UTF-8.
    """
    return data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")


def count_values(data: bytes, limit: int) -> int:
    """Return the number of values in JSON: lists, objects and everything within them.

    Each item of a list and each entry of an object follows `[`, `{` or a comma, so these marks are counted. The first
    count is fast, but includes marks within strings. If it reaches the limit, a second, slower count replaces it: a
    regular expression finds whole strings and single marks, and only the marks are counted. In valid JSON, each mark is
    followed by at most two strings, a key and a value. So the first `3 * limit` matches contain `limit` marks, if the
    JSON has that many.

    Args:
        data: JSON in UTF-8.
        limit: stop counting beyond this number.

    Returns:
        The number, at most `limit + 1`. It may be too high: an empty list or object counts twice, and the first count
        includes marks within strings.
    """
    if (marks := sum(map(data.count, (b",", b"[", b"{")))) < limit:
        return marks + 1
    tokens = islice(_TOKEN.finditer(blank_escapes(data)), 3 * limit)
    return 1 + sum(1 for _ in islice((token for token in tokens if token.lastindex), limit))
