"""Admission by bytes in flight: a process holds only so much of its requests' bodies at once.

What is read of a body is charged to the process until its request ends. Where nothing is left, the request is refused
with 503 before its body is parsed. Small bodies are not charged, so that ordinary samples are scored during any flood
of large ones, and a request that is alone is never refused, so that each body that may be read will be.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from flask import Flask, g
from prometheus_client import Gauge

from rewardstack.errors import OverloadError

FREE_BYTES = 2**16
"""Bytes of each request that are not charged; threads bound how many requests there are."""
VALUE_BYTES = 32
"""Bytes that each value of a body counts for, where its values together count for more than its bytes.

Measured with Python 3.11, parsing takes 12 to 129 bytes of memory for a value (`1`; an entry of an object), and three
or four for a byte of text (nine where one of its characters is beyond Unicode's first plane). So a byte that is charged
stands for about four in memory, whatever the body holds.
"""

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
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._bytes = self._charged = 0

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

    def release(self) -> None:
        """Gives back what was charged."""
        self._budget.take(-self._charged, self._charged)
        self._bytes = self._charged = 0


def install(app: Flask, most: int) -> None:
    """Gives each request of `app` its `g.charge`.

    Args:
        app: the application of this process.
        most: bytes that its requests may hold together.
    """
    budget = Budget(most)

    def begin() -> None:
        g.charge = Charge(budget)

    def end(_: Any) -> None:
        if "charge" in g:
            g.charge.release()

    app.before_request(begin)
    app.teardown_request(end)
