"""The health of one server as a table: how much it lets through after refusals, lost connections and successes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack.errors import OverloadError, UnreachableError
from rewardstack.transport import faults, timing
from rewardstack.transport import health as healths
from rewardstack.transport.faults import Fault
from rewardstack.transport.health import Health
from tests.support.table import Table

START = 100.0
REFUSED, TOOK = ("refused", 0.0), ("succeeds",)
OUT_OF_REACH: list[tuple[Any, ...]] = [("is lost",)] * 3


class Clock:
    """Time that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = START


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The server's time; each pause takes its longest."""
    clock = Clock()
    monkeypatch.setattr(healths, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(faults, "random", SimpleNamespace(uniform=lambda low, high: high))
    return clock


def play(health: Health, clock: Clock, events: list[tuple[Any, ...]]) -> None:
    """Plays `events`: `wait SECONDS`, `refused SENT_AGO IN_FLIGHT RETRY_AFTER`, `asked IN_FLIGHT`, or an outcome."""
    for name, *arguments in events:
        if name == "wait":
            clock.now += arguments[0]
        elif name == "refused":
            refuse(health, clock, *arguments)
        elif name == "asked":
            admits(health, *arguments)
        elif name == "succeeds":
            health.succeed()
        elif name == "lower limit":
            health.lower_limit(*arguments)
        else:
            lose(health, clock, opens=name == "hangs")


def refuse(
    health: Health,
    clock: Clock,
    sent_ago: float = 0.0,
    in_flight: int = 0,
    retry_after: float = 0.0,
    *,
    ejects: bool = False,
) -> None:
    """A request sent `sent_ago` seconds before now is refused, with so many others in flight."""
    health.in_flight = in_flight + 1
    health.fail(Fault.BUSY, OverloadError("busy", retry_after, 503), clock.now - sent_ago, ejects=ejects)
    health.in_flight = in_flight


def lose(health: Health, clock: Clock, *, ejects: bool = False, opens: bool = False) -> None:
    """The connection of a request is lost."""
    health.fail(Fault.DOWN, UnreachableError("lost"), clock.now, ejects=ejects, opens=opens)


def admits(health: Health, in_flight: int) -> bool:
    """Whether one more request may be sent, if so many are in flight."""
    health.in_flight = in_flight
    return health.admits() or health.grow()


def state(health: Health, clock: Clock) -> tuple[int, float, bool]:
    """What is allowed in flight, for how many seconds nothing is, and whether the circuit is open."""
    return health.limit, max(0.0, health.paused_until - clock.now), health.is_open


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
            health = Health(64)
            play(health, clock, events)
            assert (limit, pytest.approx(pause), False) == state(health, clock)


@pytest.mark.parametrize(
    ("events", "limit", "pause", "is_open"),
    [
        ([("is lost",)] * 2, 64, 0.0, False),
        ([("is lost",)] * 2 + [TOOK, ("is lost",)], 64, 0.0, False),
        ([("is lost",)] * 2 + [("refused", 0.0, 60), ("is lost",)], 32, 0.0, False),
        (OUT_OF_REACH, 1, 0.2, True),
        (OUT_OF_REACH * 2, 1, 0.2, True),
        ([*OUT_OF_REACH, ("wait", 0.2), ("is lost",)], 1, 0.4, True),
        ([*OUT_OF_REACH, ("wait", 0.2), TOOK], 2, 0.0, False),
        ([*OUT_OF_REACH, ("wait", 0.2), REFUSED], 1, 0.4, False),
        ([("hangs",)], 1, 0.2, True),
        ([("hangs",), ("wait", 0.2), ("hangs",), ("wait", 0.4), ("hangs",)], 1, 0.8, True),
    ],
)
def test_circuit(clock: Clock, events: list[tuple[Any, ...]], limit: int, pause: float, is_open: bool) -> None:
    """Three lost connections in a row, or one hang, open the circuit; any answer closes it, a refusal included."""
    health = Health(64)
    play(health, clock, events)
    assert (limit, pytest.approx(pause), is_open) == state(health, clock)


def test_ejection(clock: Clock) -> None:
    """An endpoint that others can stand in for is left out longer, and after ten refusals as well."""
    health, pauses = Health(64), []
    for _ in range(9):
        for _ in range(3):
            lose(health, clock, ejects=True)
        pauses.append(health.paused_until - clock.now)
        clock.now = health.paused_until
    assert [1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 4] == pytest.approx(pauses)
    health = Health(64)
    for times in range(1, 11):
        refuse(health, clock, 0.0, 60, ejects=True)
        assert (times == 10) == health.is_open != health.is_usable


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
    health = Health(64)
    play(health, clock, [*events, *[TOOK] * successes])
    assert limit == health.limit


@pytest.mark.parametrize(
    ("in_flight", "passed", "admitted"), [(0, 0.0, False), (0, 0.19, False), (0, 0.2, True), (1, 0.2, False)]
)
def test_admission_after_a_pause(clock: Clock, in_flight: int, passed: float, admitted: bool) -> None:
    """A paused endpoint takes nothing until the pause is over, and then one request."""
    health = Health(64)
    play(health, clock, [REFUSED, ("wait", passed)])
    assert admitted == admits(health, in_flight)


FULL, SHORT, LONG = ("asked", 64), ("wait", 0.19), ("wait", 0.2)


@pytest.mark.parametrize(
    ("ceiling", "events", "limit"),
    [
        (1000, [], 64),
        (1000, [FULL], 64),
        (1000, [FULL, SHORT, FULL], 64),
        (1000, [FULL, LONG, FULL], 128),
        (1000, [LONG, FULL], 64),
        (1000, [FULL, LONG, FULL, LONG, ("asked", 128), LONG, ("asked", 256)], 512),
        (100, [FULL, LONG, FULL, LONG, ("asked", 100)], 100),
        (1000, [TOOK] * 10, 74),
        (1000, [FULL, ("refused", 0.0, 32), LONG, FULL], 32),
        (1000, [FULL, ("is lost",), LONG, FULL], 64),
        (1000, [FULL, ("lower limit", 10), LONG, FULL], 10),
    ],
)
def test_first_growth(clock: Clock, ceiling: int, events: list[tuple[Any, ...]], limit: int) -> None:
    """Until the first failure, the limit doubles whenever all slots have been taken for 0.2 s, up to the ceiling."""
    health = Health(ceiling)
    play(health, clock, events)
    assert limit == health.limit


@pytest.mark.parametrize(("in_flight", "admitted"), [(0, True), (63, True), (64, False), (65, False)])
def test_admission(clock: Clock, in_flight: int, admitted: bool) -> None:
    """An endpoint takes up to its limit."""
    assert admitted == admits(Health(64), in_flight)


def test_success_during_a_pause(clock: Clock) -> None:
    """The answer to a request sent earlier does not end a pause that the server asked for."""
    health = Health(64)
    play(health, clock, [("refused", 0.0, 1, 7.0), TOOK])
    assert not admits(health, 0)


def test_long_outage(clock: Clock) -> None:
    """However long an outage lasts, the pauses grow to their longest and no further, and hold."""
    health, pauses = Health(64), []
    for _ in range(3000):
        refuse(health, clock)
        pauses.append(health.paused_until - clock.now)
        clock.now = health.paused_until
    assert [0.2, 0.4, 0.8, 1.6, 3.2] == pytest.approx(pauses[:5])
    assert {timing.BACKOFF_MAX} == {round(pause, 6) for pause in pauses[5:]}


def test_pauses_differ(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses are drawn from the upper half of their range, so that many clients do not come back at once."""
    pauses = []
    for draw in (min, max):
        monkeypatch.setattr(faults, "random", SimpleNamespace(uniform=draw))
        health = Health(64)
        play(health, clock, [REFUSED])
        pauses.append(health.paused_until - clock.now)
    assert [0.1, 0.2] == pytest.approx(pauses)


def test_pauses_are_counted_until_an_answer(clock: Clock) -> None:
    """From a pause until the next answer the endpoint counts as paused, so that a probe goes first."""
    health, seen = Health(64), []
    for event in (TOOK, REFUSED, ("wait", 0.2), TOOK):
        play(health, clock, [event])
        seen.append(health.pauses)
    assert [0, 1, 1, 0] == seen


def test_a_question_changes_nothing(clock: Clock) -> None:
    """However often a full server is asked whether it admits a request, its limit stays."""
    health = Health(1000)
    health.in_flight = 64
    health.grow()
    clock.now += 3600
    assert not any(health.admits() for _ in range(5))
    assert health.limit == 64 and health.grow() and health.limit == 128


def test_replies_and_lost_connections(clock: Clock) -> None:
    """A server that answers anything is not down; one that is down is not judged by its earlier replies."""
    health = Health(64)
    lose(health, clock)
    assert health.down_since == START
    refuse(health, clock)
    assert health.down_since == float("inf") and Fault.BUSY in health.streaks
    lose(health, clock)
    assert [*health.streaks] == [Fault.DOWN]
    health.succeed()
    assert not health.streaks and health.error is None
