"""Admission control: limits the memory for request bodies, by their bytes and numbers of JSON values, in each process.

Each process has a budget of bytes. The bytes read from a body are charged to it until the request ends. If the budget
is used up, the request is refused with 503 before its body is parsed. Small bodies are not charged, so that ordinary
samples are scored during any flood of large ones. A request is never refused while no other holds bytes, so every body
up to the size limit can be read.

JSON values are counted before parsing, with a regular expression on the result of `without_escapes`. On the original
text, the expression would have to repeat a group, which needs about 120 bytes for each repetition: 1 GB for 8 MiB.
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
from rewardstack_rules.http.connection import BROKEN_BODY
from rewardstack_rules.http.errors import ApiError

FREE_BYTES = 2**16
"""Bytes of each request that are not charged; the number of threads limits how many requests hold them."""
VALUE_BYTES = 32
"""Bytes charged for each JSON value of a body, if their sum is more than the size of the body.

Measured with Python 3.11, parsing takes from 12 bytes of memory for a value (`1`) to 129 (an entry of an object), and
three or four bytes for a byte of text (nine if a character is beyond Unicode's first plane). So a charged byte stands
for about four bytes of memory, for any body.
"""
MAX_VALUES = 500_000
"""Maximum number of JSON values in one body: a hundred thousand samples of four fields. Parsing them takes at most
65 MB, and blocks the process for half a second."""
PIECE = 2**18
"""Number of bytes of a body that are read at a time."""
JSON_TEXT = rb'"[^"]*"'
"""Regular expression for a JSON string without escapes."""

_TOKEN = re.compile(JSON_TEXT + rb"|([\[{,])")

HELD = Gauge("rewardstack_body_bytes", "Bytes of bodies that are held, small ones aside.", multiprocess_mode="livesum")


class Budget:
    """Limits the bytes that the requests of this process hold together.

    Args:
        most: the limit, in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._lock = Lock()

    def take(self, count: int, own: int) -> None:
        """Reserve bytes, or release them if `count` is negative.

        Args:
            count: number of bytes.
            own: bytes that the same request already holds.

        Raises:
            OverloadError: other requests hold too many bytes. The bytes in `own` are released in the same step, so
                that one of several competing requests succeeds.
        """
        if not count:
            return
        with self._lock:
            if count > 0 and self._held > own and self._held + count > self._most:
                self._held -= own
                HELD.dec(own)
                raise OverloadError(
                    f"other requests use up the {self._most} bytes for bodies in flight of this process "
                    "(REWARD_BYTES_IN_FLIGHT); try again, or send fewer samples per request"
                )
            self._held += count
            HELD.inc(count)


class Charge:
    """The share of the budget that one request holds.

    Args:
        budget: the budget of the request's process.
        longest: maximum size of the body, in bytes.
    """

    def __init__(self, budget: Budget, longest: int) -> None:
        self.longest = longest
        self._budget = budget
        self._bytes = self._charged = 0

    @property
    def bytes(self) -> int:
        """Bytes charged so far, including the body."""
        return self._bytes

    def add(self, count: int) -> None:
        """Charge bytes that the request is about to hold.

        Raises:
            OverloadError: the budget is used up; the whole charge of the request is released.
        """
        before, self._charged = self._charged, 0
        self._bytes += count
        charged = max(0, self._bytes - FREE_BYTES)
        self._budget.take(charged - before, before)
        self._charged = charged

    def move(self, budget: Budget) -> None:
        """Move the charge to another budget.

        Raises:
            OverloadError: the other budget is used up.
        """
        budget.take(self._charged, 0)
        self._budget.take(-self._charged, self._charged)
        self._budget = budget

    def release(self) -> None:
        """Release everything that was charged."""
        self._budget.take(-self._charged, self._charged)
        self._bytes = self._charged = 0


def install(app: Flask, most: int, longest: int) -> None:
    """Set `g.charge` for each request of `app`, and release it at the end of the request.

    Args:
        app: the application of this process.
        most: bytes that all requests may hold together.
        longest: maximum size of one body, in bytes.
    """
    budget = Budget(most)

    def begin() -> None:
        g.charge = Charge(budget, longest)

    def end(_: Any) -> None:
        if "charge" in g:
            g.charge.release()

    app.before_request(begin)
    app.teardown_request(end)


def read_body() -> bytes:
    """Return the body of the request, which is JSON; charge its bytes, or its values if they count for more.

    Raises:
        ApiError: 400 if the body cannot be read to its end; 413 if it has too many values.
        OverloadError: the budget of the process is used up.
        RequestEntityTooLarge: the body is longer than the limit.
    """
    data = _read()
    count = require_few(data, MAX_VALUES, "body", "send fewer samples per request")
    g.charge.add(max(0, VALUE_BYTES * count - len(data)))
    return data


def _read() -> bytes:
    request.max_content_length = g.charge.longest + 1  # Flask cuts off a body without a length there, silently
    data = bytearray()
    try:
        while piece := request.stream.read(PIECE):
            g.charge.add(len(piece))
            data += piece
    except BROKEN_BODY as error:
        raise unreadable(error) from error
    if len(data) > g.charge.longest:
        raise RequestEntityTooLarge
    return bytes(data)


def unreadable(error: Exception) -> ApiError:
    """Return the error for a request whose body could not be read because of `error`, one of `BROKEN_BODY`."""
    return ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body")


def require_few(data: bytes, most: int, field: str, remedy: str) -> int:
    """Return the number of values in JSON, counted without parsing it; raise ApiError if there are too many.

    Args:
        data: the JSON.
        most: maximum number of values.
        field: name of the JSON in the error.
        remedy: what to do, for the error.

    Raises:
        ApiError: 413; the JSON has more than `most` values.
    """
    count = count_values(data, most)
    if count > most:
        raise ApiError(413, f"{field} has more than {most} values (strings, numbers, lists …); {remedy}", field)
    return count


def without_escapes(data: bytes) -> bytes:
    """Blank out escapes in JSON, so that every quotation mark that is left begins or ends a string.

    Args:
        data: JSON in UTF-8.
    """
    return data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")


def count_values(data: bytes, most: int) -> int:
    """Return the number of values in JSON: lists, objects and everything within them.

    Each value except the outermost follows an opening bracket or a comma, so these characters are counted. Only if
    there are many, those within strings are left out. Valid JSON of `most` values has at most twice as many strings,
    so the first `3 * most` tokens suffice.

    Args:
        data: JSON in UTF-8.
        most: stop counting beyond this number.

    Returns:
        The number, at most `most + 1`. A number up to `most` may be too high, by the commas and brackets in strings.
    """
    if (marks := sum(map(data.count, (b",", b"[", b"{")))) < most:
        return marks + 1
    tokens = islice(_TOKEN.finditer(without_escapes(data)), 3 * most)
    return 1 + sum(1 for _ in islice((token for token in tokens if token.lastindex), most))
