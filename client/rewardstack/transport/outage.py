"""An outage costs one timeout: from when on a service counts as away, and by which probes it is found to be back.

A call waits for a service that is away no longer than its timeout from the moment the service went, whenever it comes
itself; where connections are refused, and the service does not move, `REFUSED_FOR` at most. Calls that come later are
told so at once. One probe at a time, made when somebody asks, finds out whether the service is back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewardstack.core.deadline import SharedDeadline
from rewardstack.transport.endpoint import Endpoint

REFUSED_FOR = 5.0
"""Seconds for which a server that refuses connections is waited for: one that is only restarted is back within them."""
PROBE_TIMEOUT = 1.0
"""Seconds that a server that was away has to answer a probe."""
PROBE_SHARE = 1 / 6
"""Of the time, at most, for which calls wait for probes,"""
PROBE_PAUSES = 0.2, 5.0
"""with a pause of so many seconds at least, and at most, between two of them."""


class Outage:
    """Of one service, while it lasts.

    Args:
        moves: whether the service may be found elsewhere while it is waited for.
    """

    def __init__(self, *, moves: bool) -> None:
        self._moves = moves
        self._probe: asyncio.Task[None] | None = None
        self._next_probe_at = 0.0

    def ends_in(self, endpoints: Sequence[Endpoint], deadline: SharedDeadline) -> float:
        """Seconds that a call waits for a service that is away, none of whose endpoints comes back.

        Returns:
            0 or less where it is to be told at once; infinity where one of the endpoints is not away.
        """
        timeout = deadline.timeout
        brief = timeout if self._moves else min(timeout, REFUSED_FOR)
        ends = [min(one.incident.away_since + timeout, one.incident.refusing_since + brief) for one in endpoints]
        return max(ends) - time.monotonic()

    async def probe(self, endpoints: Sequence[Endpoint], deadline: SharedDeadline) -> None:
        """Asks the endpoints whether they are back, unless that was done just now; waits for who asks already."""
        if self._probe is None and time.monotonic() >= self._next_probe_at:
            self._probe = asyncio.create_task(self._ask(endpoints))
        if self._probe is not None:
            await asyncio.wait((self._probe,), timeout=max(0.0, deadline.remaining()))

    async def _ask(self, endpoints: Sequence[Endpoint]) -> None:
        began = time.monotonic()
        await asyncio.gather(*(endpoint.is_back(PROBE_TIMEOUT) for endpoint in endpoints), return_exceptions=True)
        ended, (least, most) = time.monotonic(), PROBE_PAUSES
        self._next_probe_at = ended + min(max(least, (ended - began) * (1 / PROBE_SHARE - 1)), most)
        self._probe = None

    def close(self) -> None:
        """Ends the probe under way."""
        if self._probe is not None:
            self._probe.cancel()
