"""The limiter of one endpoint as a table: how much it lets through after refusals, lost connections and successes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.transport import limiter as limiters
from rewardstack.transport import timing
from rewardstack.transport.limiter import Limiter
from tests.support.table import Table

START = 100.0
REFUSED, TOOK = ("refused", 0.0), ("record_success",)
OUT_OF_REACH: list[tuple[Any, ...]] = [("record_failure",)] * 3


class Clock:
    """Time that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = START


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The limiter's time; each pause takes its longest."""
    clock = Clock()
    monkeypatch.setattr(limiters, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(limiters, "random", SimpleNamespace(uniform=lambda low, high: high))
    return clock


def play(limiter: Limiter, clock: Clock, events: list[tuple[Any, ...]]) -> None:
    """Plays `events` to the limiter: `wait SECONDS`, `refused SENT_AGO IN_FLIGHT RETRY_AFTER`, or a method's name."""
    for name, *arguments in events:
        if name == "wait":
            clock.now += arguments[0]
        elif name == "refused":
            refuse(limiter, clock, *arguments)
        elif name == "hangs":
            limiter.record_failure(immediately=True)
        else:
            getattr(limiter, name)(*arguments)


def refuse(limiter: Limiter, clock: Clock, sent_ago: float = 0.0, in_flight: int = 0, retry_after: float = 0.0) -> None:
    """A request sent `sent_ago` seconds before now is refused."""
    limiter.record_overload(clock.now - sent_ago, in_flight, retry_after)


def state(limiter: Limiter, clock: Clock) -> tuple[int, float, bool]:
    """What is allowed in flight, for how many seconds nothing is, and whether the circuit is open."""
    return limiter.limit, max(0.0, limiter.paused_until - clock.now), limiter.is_open


REFUSALS: list[tuple[list[tuple[Any, ...]], int, float]] = [
    ([], 64, 0.0),
    ([TOOK] * 3, 64, 0.0),
    ([("refused", 0.0, 60)], 32, 0.0),
    ([("refused", 0.0, 10)], 10, 0.0),
    ([("refused", 0.0, 60), ("wait", 1), ("refused", 2.0, 59)], 32, 0.0),
    ([("refused", 0.0, 60), ("wait", 1), ("refused", 2.0, 20)], 20, 0.0),
    ([("refused", 0.0, 60), ("wait", 1), ("refused", 0.5, 30)], 16, 0.0),
    ([("refused", 0.0, 1)], 1, 0.0),
    ([REFUSED], 1, 0.2),
    ([REFUSED, REFUSED], 1, 0.2),
    ([REFUSED, ("wait", 0.2), REFUSED], 1, 0.4),
    ([REFUSED, ("wait", 0.2), REFUSED, ("wait", 0.4), REFUSED], 1, 0.8),
    ([("refused", 0.0, 0), ("wait", 0.2), TOOK, REFUSED], 1, 0.2),
    ([("refused", 0.0, 0, 7.0)], 1, 7.0),
    ([("refused", 0.0, 10, 7.0)], 10, 7.0),
    ([("refused", 0.0, 10, 7.0), ("refused", 1.0, 9, 3.0)], 9, 7.0),
    ([("refused", 0.0, 0, 0.1)], 1, 0.2),
    ([("refused", 0.0, 0, 86400.0)], 1, timing.RETRY_AFTER_MAX),
]


def test_refusals(clock: Clock, table: Table) -> None:
    """A refusal lowers the limit to what is in flight and halves it once a wave; a wave that got nothing pauses."""
    for events, limit, pause in REFUSALS:
        with table.case(f"{events}"):
            clock.now = START
            limiter = Limiter(64)
            play(limiter, clock, events)
            assert (limit, pytest.approx(pause), False) == state(limiter, clock)


@pytest.mark.parametrize(
    ("events", "limit", "pause", "is_open"),
    [
        ([("record_failure",)] * 2, 64, 0.0, False),
        ([("record_failure",)] * 2 + [TOOK, ("record_failure",)], 64, 0.0, False),
        ([("record_failure",)] * 2 + [("refused", 0.0, 60), ("record_failure",)], 32, 0.0, False),
        (OUT_OF_REACH, 1, 0.2, True),
        (OUT_OF_REACH * 2, 1, 0.2, True),
        ([*OUT_OF_REACH, ("wait", 0.2), ("record_failure",)], 1, 0.4, True),
        ([*OUT_OF_REACH, ("wait", 0.2), TOOK], 2, 0.0, False),
        ([*OUT_OF_REACH, ("wait", 0.2), REFUSED], 1, 0.4, False),
        ([("hangs",)], 1, 0.2, True),
        ([("hangs",), ("wait", 0.2), ("hangs",), ("wait", 0.4), ("hangs",)], 1, 0.8, True),
    ],
)
def test_circuit(clock: Clock, events: list[tuple[Any, ...]], limit: int, pause: float, is_open: bool) -> None:
    """Three lost connections in a row, or one hang, open the circuit; any answer closes it, a refusal included."""
    limiter = Limiter(64)
    play(limiter, clock, events)
    assert (limit, pytest.approx(pause), is_open) == state(limiter, clock)


def test_ejection(clock: Clock) -> None:
    """An endpoint that others can stand in for is left out longer, and after ten refusals as well."""
    limiter, pauses = Limiter(64), []
    for _ in range(9):
        for _ in range(3):
            limiter.record_failure(ejects=True)
        pauses.append(limiter.paused_until - clock.now)
        clock.now = limiter.paused_until
    assert [1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 4] == pytest.approx(pauses)
    limiter = Limiter(64)
    for times in range(1, 11):
        limiter.record_overload(clock.now, 60, 0.0, ejects=True)
        assert (times == 10) == limiter.is_open != limiter.is_available


@pytest.mark.parametrize(
    ("events", "successes", "limit"),
    [
        ([REFUSED], 1, 2),
        ([REFUSED], 3, 4),
        ([REFUSED], 62, 63),
        ([REFUSED], 1000, 64),
        (OUT_OF_REACH, 31, 32),
        ([("refused", 0.0, 8)], 1, 8),
        ([("refused", 0.0, 8)], 8, 8),
        ([("refused", 0.0, 8)], 9, 9),
        ([("refused", 0.0, 8)], 18, 10),
        ([("refused", 0.0, 8), ("wait", 1), ("refused", 0.0, 2)], 3, 3),
        ([REFUSED, ("wait", 1), TOOK, TOOK, TOOK, ("refused", 0.0, 3)], 3, 3),
    ],
)
def test_growth(clock: Clock, events: list[tuple[Any, ...]], successes: int, limit: int) -> None:
    """After a pause each success adds one place, as in slow start; above a refusal one place takes a whole wave."""
    limiter = Limiter(64)
    play(limiter, clock, [*events, *[TOOK] * successes])
    assert limit == limiter.limit


@pytest.mark.parametrize(
    ("in_flight", "passed", "admitted"), [(0, 0.0, False), (0, 0.19, False), (0, 0.2, True), (1, 0.2, False)]
)
def test_admission_after_a_pause(clock: Clock, in_flight: int, passed: float, admitted: bool) -> None:
    """A paused endpoint takes nothing until the pause is over, and then one request."""
    limiter = Limiter(64)
    play(limiter, clock, [REFUSED, ("wait", passed)])
    assert admitted == limiter.admits(in_flight)


FULL, SHORT, LONG = ("admits", 64), ("wait", 0.19), ("wait", 0.2)


@pytest.mark.parametrize(
    ("ceiling", "events", "limit"),
    [
        (1000, [], 64),
        (1000, [FULL], 64),
        (1000, [FULL, SHORT, FULL], 64),
        (1000, [FULL, LONG, FULL], 128),
        (1000, [LONG, FULL], 64),
        (1000, [FULL, LONG, FULL, LONG, ("admits", 128), LONG, ("admits", 256)], 512),
        (100, [FULL, LONG, FULL, LONG, ("admits", 100)], 100),
        (1000, [TOOK] * 10, 74),
        (1000, [FULL, ("refused", 0.0, 32), LONG, FULL], 32),
        (1000, [FULL, ("record_failure",), LONG, FULL], 64),
        (1000, [FULL, ("lower_limit", 10), LONG, FULL], 10),
    ],
)
def test_first_growth(clock: Clock, ceiling: int, events: list[tuple[Any, ...]], limit: int) -> None:
    """Until the first failure, the limit doubles whenever all slots have been taken for 0.2 s, up to the ceiling."""
    limiter = Limiter(ceiling)
    play(limiter, clock, events)
    assert limit == limiter.limit


@pytest.mark.parametrize(("in_flight", "admitted"), [(0, True), (63, True), (64, False), (65, False)])
def test_admission(clock: Clock, in_flight: int, admitted: bool) -> None:
    """An endpoint takes up to its limit."""
    assert admitted == Limiter(64).admits(in_flight)


def test_success_during_a_pause(clock: Clock) -> None:
    """The answer to a request sent earlier does not end a pause that the server asked for."""
    limiter = Limiter(64)
    play(limiter, clock, [("refused", 0.0, 1, 7.0), TOOK])
    assert not limiter.admits(0)


def test_long_outage(clock: Clock) -> None:
    """However long an outage lasts, the pauses grow to their longest and no further, and hold."""
    limiter, pauses = Limiter(64), []
    for _ in range(3000):
        limiter.record_overload(clock.now, 0, 0.0)
        pauses.append(limiter.paused_until - clock.now)
        clock.now = limiter.paused_until
    assert [0.2, 0.4, 0.8, 1.6, 3.2] == pytest.approx(pauses[:5])
    assert {timing.BACKOFF_MAX} == {round(pause, 6) for pause in pauses[5:]}


def test_pauses_differ(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are drawn from the upper half of their range, so that many clients do not come back at once."""
    pauses = []
    for draw in (min, max):
        monkeypatch.setattr(limiters, "random", SimpleNamespace(uniform=draw))
        limiter = Limiter(64)
        play(limiter, clock, [REFUSED])
        pauses.append(limiter.paused_until - clock.now)
    assert [0.1, 0.2] == pytest.approx(pauses)


def test_pauses_are_counted_until_an_answer(clock: Clock) -> None:
    """From a pause until the next answer the endpoint counts as paused, so that a probe goes first."""
    limiter, seen = Limiter(64), []
    for event in (("record_success",), REFUSED, ("wait", 0.2), TOOK):
        play(limiter, clock, [event])
        seen.append(limiter.pauses)
    assert [0, 1, 1, 0] == seen
