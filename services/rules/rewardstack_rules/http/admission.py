"""Admission control by bytes in flight: limits the bytes and values of request bodies that a process holds together.

What is read of a body is charged to the process until its request ends. If the budget is used up, the request is
refused with 503 before its body is parsed. Small bodies are not charged, so that ordinary samples are scored during any
flood of large ones. A request that is alone is never refused, so every body up to the size limit can be read.

JSON values are counted before parsing. A regular expression that repeats a group keeps about 120 bytes for each
repetition, 1 GB for 8 MiB of text; expressions on the result of `without_escapes` need no group.
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
"""Bytes of each request that are not charged; the number of threads limits the number of requests."""
VALUE_BYTES = 32
"""Bytes charged for each value of a body, if that is more than the bytes of the body.

Measured with Python 3.11, parsing takes 12 to 129 bytes of memory for a value (`1`; an entry of an object), and three
or four for a byte of text (nine if one of its characters is beyond Unicode's first plane). So a charged byte means
about four bytes of memory for any body.
"""
MAX_VALUES = 500_000
"""Maximum values of one body: a hundred thousand samples of four fields. Parsing them takes at most 65 MB, and blocks
the process for half a second."""
PIECE = 2**18
"""Bytes of a body that are read at a time."""
JSON_TEXT = rb'"[^"]*"'
"""A JSON string without escapes."""

_TOKEN = re.compile(JSON_TEXT + rb"|([\[{,])")

HELD = Gauge("rewardstack_body_bytes", "Bytes of bodies that are held, small ones aside.", multiprocess_mode="livesum")


class Budget:
    """Limits the bytes that the requests of this process hold together.

    Args:
        most: the limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._lock = Lock()

    def take(self, count: int, own: int) -> None:
        """Reserve bytes, or release them if `count` is negative.

        Args:
            count: how many.
            own: bytes that the same request holds already.

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
        budget: of its process.
        longest: maximum bytes of its body.
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
            OverloadError: that budget is used up.
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
        most: bytes that its requests may hold together.
        longest: maximum bytes of one body.
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
    """Return the request's JSON; charge its bytes, or its values if they count for more.

    Raises:
        ApiError: 400, it cannot be read to its end; 413, it has too many values.
        OverloadError: the budget of the process is used up.
        RequestEntityTooLarge: it is longer than the limit.
    """
    data = _read()
    count = require_few(data, MAX_VALUES, "body", "send fewer samples per request")
    g.charge.add(max(0, VALUE_BYTES * count - len(data)))
    return data


def _read() -> bytes:
    request.max_content_length = g.charge.longest + 1  # a body without a length is cut off there silently
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
    """Return the refusal for a body whose reading raised one of `BROKEN_BODY`."""
    return ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body")


def require_few(data: bytes, most: int, field: str, remedy: str) -> int:
    """Return the number of values in JSON, counted without parsing it; raise ApiError if there are too many.

    Args:
        data: the JSON.
        most: maximum number of values.
        field: its name in the error.
        remedy: what to do if there are more, for the error.

    Raises:
        ApiError: 413; there are more.
    """
    count = count_values(data, most)
    if count > most:
        raise ApiError(413, f"{field} has more than {most} values (strings, numbers, lists …); {remedy}", field)
    return count


def without_escapes(data: bytes) -> bytes:
    """Return JSON of the same length in which every quotation mark begins or ends a string.

    Args:
        data: JSON in UTF-8.
    """
    return data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")


def count_values(data: bytes, most: int) -> int:
    """Return the number of values in JSON, including lists, objects and what is within them.

    Each value except the outermost follows an opening bracket or a comma, so these are counted; if there are many,
    those in strings are left out. Valid JSON of `most` values has at most twice as many strings; in any other, what
    follows the first `3 * most` tokens is never parsed.

    Args:
        data: JSON in UTF-8.
        most: stop counting beyond this number.

    Returns:
        The number, at most `most + 1`. Up to `most` it may be too high by the commas and brackets in strings.
    """
    if (marks := sum(map(data.count, (b",", b"[", b"{")))) < most:
        return marks + 1
    tokens = islice(_TOKEN.finditer(without_escapes(data)), 3 * most)
    return 1 + sum(1 for _ in islice((token for token in tokens if token.lastindex), most))
