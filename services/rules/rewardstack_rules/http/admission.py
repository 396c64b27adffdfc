"""Admission by bytes in flight: a process holds only so much of its requests' bodies at once, and so many values.

What is read of a body is charged to the process until its request ends. Where nothing is left, the request is refused
with 503 before its body is parsed. Small bodies are not charged, so that ordinary samples are scored during any flood
of large ones, and a request that is alone is never refused, so that each body that may be read will be.

How many values JSON holds is found before it is parsed. A regular expression that repeats a group keeps about 120 bytes
for each time, which 8 MiB of text make 1 GB; the ones that work on what `without_escapes` returns need no group.
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
"""Bytes of each request that are not charged; threads bound how many requests there are."""
VALUE_BYTES = 32
"""Bytes that each value of a body counts for, where its values together count for more than its bytes.

Measured with Python 3.11, parsing takes 12 to 129 bytes of memory for a value (`1`; an entry of an object), and three
or four for a byte of text (nine where one of its characters is beyond Unicode's first plane). So a byte that is charged
stands for about four in memory, whatever the body holds.
"""
MAX_VALUES = 500_000
"""Most values of one body: a hundred thousand samples of four fields. Parsed, that many take 65 MB at most, and half a
second, in which a process does nothing else."""
PIECE = 2**18
"""Bytes of a body that are read at a time."""
JSON_TEXT = rb'"[^"]*"'
"""A text of JSON, where none has an escape."""

_TOKEN = re.compile(JSON_TEXT + rb"|([\[{,])")

HELD = Gauge("rewardstack_body_bytes", "Bytes of bodies that are held, small ones aside.", multiprocess_mode="livesum")


class Budget:
    """Bytes that the requests of this process may hold together.

    Args:
        most: how many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._lock = Lock()

    def take(self, count: int, own: int) -> None:
        """Takes bytes, or gives them back where `count` is negative.

        Args:
            count: how many.
            own: that the same request holds already.

        Raises:
            OverloadError: other requests hold what is needed. This one's `own` are given back in the same moment, so
                that of several that meet the last one finds room.
        """
        if not count:
            return
        with self._lock:
            if count > 0 and self._held > own and self._held + count > self._most:
                self._held -= own
                HELD.dec(own)
                raise OverloadError(
                    f"other requests hold the {self._most} bytes of bodies that this process takes at once "
                    "(REWARD_BYTES_IN_FLIGHT); try again, or send fewer samples at once"
                )
            self._held += count
            HELD.inc(count)


class Charge:
    """What one request holds of the budget.

    Args:
        budget: of its process.
        longest: bytes of its body that are read.
    """

    def __init__(self, budget: Budget, longest: int) -> None:
        self.longest = longest
        self._budget = budget
        self._bytes = self._charged = 0

    @property
    def bytes(self) -> int:
        """What was charged so far, the body's among it."""
        return self._bytes

    def add(self, count: int) -> None:
        """Charges bytes that are about to be held.

        Raises:
            OverloadError: there is no room for them; nothing is charged any more.
        """
        before, self._charged = self._charged, 0
        self._bytes += count
        charged = max(0, self._bytes - FREE_BYTES)
        self._budget.take(charged - before, before)
        self._charged = charged

    def move(self, budget: Budget) -> None:
        """Charges another budget from now on.

        Raises:
            OverloadError: there is no room in it.
        """
        budget.take(self._charged, 0)
        self._budget.take(-self._charged, self._charged)
        self._budget = budget

    def release(self) -> None:
        """Gives back what was charged."""
        self._budget.take(-self._charged, self._charged)
        self._bytes = self._charged = 0


def install(app: Flask, most: int, longest: int) -> None:
    """Gives each request of `app` its `g.charge`.

    Args:
        app: the application of this process.
        most: bytes that its requests may hold together.
        longest: bytes of one body that are read.
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
    """The request's JSON, charged for its bytes, and for its values where they count for more.

    Raises:
        ApiError: 400, it cannot be read to its end; 413, it holds too many values.
        OverloadError: other requests hold all that the process may hold at once.
        RequestEntityTooLarge: it is longer than the server reads.
    """
    data = _read()
    count = require_few(data, MAX_VALUES, "body", "send fewer samples at once")
    g.charge.add(max(0, VALUE_BYTES * count - len(data)))
    return data


def _read() -> bytes:
    request.max_content_length = g.charge.longest + 1  # a body without a length is cut there without a word
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
    """What is said of a body whose reading raised one of `BROKEN_BODY`."""
    return ApiError(400, f"the body cannot be read to its end: {type(error).__name__}", "body")


def require_few(data: bytes, most: int, field: str, remedy: str) -> int:
    """How many values JSON holds, found before it is parsed.

    Args:
        data: the JSON.
        most: values that it may hold.
        field: how a complaint calls it.
        remedy: what to do where it holds more.

    Raises:
        ApiError: 413; it holds more.
    """
    count = count_values(data, most)
    if count > most:
        raise ApiError(413, f"{field} holds more than {most} values (texts, numbers, lists …); {remedy}", field)
    return count


def without_escapes(data: bytes) -> bytes:
    """JSON of the same length in which every quotation mark begins or ends a text.

    Args:
        data: JSON in UTF-8.
    """
    return data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")


def count_values(data: bytes, most: int) -> int:
    """How many values JSON holds, those within lists and objects and these themselves included.

    Each but the outermost stands behind a bracket that opens or a comma, so these are counted; where there are many,
    without those in texts. Valid JSON of `most` values has no more than twice as many texts; what is behind the first
    `3 * most` tokens of any other is never parsed.

    Args:
        data: JSON in UTF-8.
        most: beyond which it makes no difference how many there are.

    Returns:
        Their number, at most `most + 1`. Up to `most` it may be too high by the commas and brackets in texts.
    """
    if (marks := sum(map(data.count, (b",", b"[", b"{")))) < most:
        return marks + 1
    tokens = islice(_TOKEN.finditer(without_escapes(data)), 3 * most)
    return 1 + sum(1 for _ in islice((token for token in tokens if token.lastindex), most))
