"""The faults of servers, and the rule for each.

`RULES` is the table of docs/performance.md ("Overload and outages") as data. `Health` counts the faults of a server,
and `Servers` decides about a request.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from rewardstack.errors import OverloadError, RejectedError, ServiceError, UnreachableError
from rewardstack.transport import timing

LIMITING = frozenset({429, 503, 529})
"""Statuses of a server that is up but overloaded."""
LOST = frozenset({502, 504, *range(520, 525)})
"""Statuses of a gateway or proxy that cannot reach a server."""
REPLICA_STATUSES = frozenset({*range(520, 525), 529})
"""If our gateway returns one of these statuses, a single replica has failed; another replica may accept the request."""
OVERLOADED = LIMITING | LOST | {408, 425}
"""Statuses of temporary errors (`OverloadError`)."""


class Fault(Enum):
    """What is wrong, as far as a failed request shows."""

    DOWN = "down"
    BUSY = "busy"
    LATE = "late"
    INVALID = "invalid"
    MISPLACED = "misplaced"
    REJECTED = "rejected"


TEMPORARY = frozenset({Fault.DOWN, Fault.BUSY, Fault.LATE})
"""Faults of a server that does not accept requests now."""


class Rule(NamedTuple):
    """What a fault does to the server and to the request.

    Args:
        failures: the failures, for the documentation.
        request: what happens to the request if no other server is left, for the documentation.
        opens_after: faults in a row after which the server is skipped; 0 for never.
        opens_alone: whether the server is paused in this way even if it is the only one.
        lowers_limit: whether the server gets fewer requests at a time.
        counted: what is counted until the server is skipped, for the documentation; empty for the failures.
    """

    failures: str
    request: str
    opens_after: int = 0
    opens_alone: bool = False
    lowers_limit: bool = False
    counted: str = ""


RULES: Mapping[Fault, Rule] = MappingProxyType(
    {
        Fault.DOWN: Rule(
            "connection refused or lost before the reply, no answer, unknown host, 502, 504, 520 to 524",
            "is retried until the outage has lasted for one timeout; from then until the server recovers, requests "
            "fail immediately",
            opens_after=timing.FAILURES_TO_OPEN,
            opens_alone=True,
        ),
        Fault.BUSY: Rule(
            "429, 503, 529; any error whose type, code or words say that the server is overloaded",
            "is retried after `Retry-After` until its timeout, with fewer requests in flight",
            opens_after=timing.OVERLOADS_TO_OPEN,
            lowers_limit=True,
        ),
        Fault.LATE: Rule("408, 425", "is retried with growing pauses until its timeout"),
        Fault.INVALID: Rule(
            "other 5xx; an incomplete reply; 200 with an empty body, HTML or an `error`",
            "is retried `REWARDSTACK_MAX_RETRIES` (3) times. Without the stack's gateway, the process has a budget "
            "besides: ten retries, and one more per ten requests",
            opens_after=timing.FAILURES_TO_OPEN,
        ),
        Fault.MISPLACED: Rule(
            "401, 403, 404",
            "fails (404: after one retry). Behind the stack's gateway, all three are retried up to "
            "`REWARDSTACK_MAX_RETRIES` times",
            opens_after=timing.FAILURES_TO_OPEN,
            counted="requests that another server accepted",
        ),
        Fault.REJECTED: Rule("other 4xx, `insufficient_quota`", "always fails; after 413, a batch is split"),
    }
)


def fault_of(error: ServiceError) -> Fault:
    """Return what an error shows about the server."""
    if isinstance(error, UnreachableError):
        return Fault.DOWN
    if isinstance(error, OverloadError):
        if error.status in LOST:
            return Fault.DOWN
        return Fault.BUSY if error.status in LIMITING or not error.status else Fault.LATE
    if isinstance(error, RejectedError):
        return Fault.MISPLACED if error.is_misplaced else Fault.REJECTED
    return Fault.INVALID


def backoff(first: float, maximum: float, times: int) -> float:
    """Return a random pause in seconds: 50 % to 100 % of `first * 2**min(times, 10)`, which is limited to `maximum`."""
    return min(first * 2.0 ** min(times, 10), maximum) * random.uniform(0.5, 1.0)
