"""How long a sample may take: a timeout restarts with progress, a limit does not."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rewardstack import Request, ascore, score
from rewardstack.core import deadline
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.pipeline.scorer import Context
from rewardstack.transport import timing
from tests.support.clock import Clock
from tests.support.threaded import serving


class Time:
    """Time that stands still until it is told otherwise; also a service whose last progress is set by hand."""

    def __init__(self) -> None:
        self.now = self.last_progress = 100.0


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The deadlines' time."""
    one = Time()
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: one.now))
    return one


def test_timeout_counts_from_arrival(time: Time) -> None:
    """Without progress a sample has its timeout from its arrival on, and then less than nothing."""
    one = Deadline(5)
    time.now += 3
    assert 2 == one.remaining()
    time.now += 3
    assert -1 == one.remaining()


def test_timeout_counts_from_being_sent(time: Time) -> None:
    """When a part of it is sent, the timeout restarts."""
    one = Deadline(5)
    time.now += 4
    one.restart()
    assert 5 == one.remaining()


def test_limit_ends_everything(time: Time) -> None:
    """The limit holds whatever progress there is."""
    one = Deadline(5, limit=6)
    time.now += 4
    one.restart()
    one.enter_queue(time)
    time.last_progress = time.now
    assert 2 == one.remaining()


@pytest.mark.parametrize("limit", [0.0, -1.0])
def test_limit_that_has_passed(time: Time, limit: float) -> None:
    """A limit that has passed leaves no time."""
    assert limit == Deadline(5, limit=limit).remaining()


def test_queue(time: Time) -> None:
    """While it waits for its turn, the service's progress counts as its own; before and after, it does not."""
    one = Deadline(5)
    time.last_progress = time.now + 3
    assert 5 == one.remaining()
    one.enter_queue(time)
    assert 8 == one.remaining()
    one.leave_queue(time)
    assert 5 == one.remaining()


def test_several_queues(time: Time) -> None:
    """Of several services it waits for, the latest progress counts; leaving one queue leaves the others."""
    other = Time()
    other.last_progress = time.now + 7
    one = Deadline(5)
    for queue in (time, other, other):
        one.enter_queue(queue)
    one.leave_queue(other)
    assert 12 == one.remaining()
    one.leave_queue(other)
    assert 5 == one.remaining()


def test_queue_that_made_no_progress_lately(time: Time) -> None:
    """A service that last answered long ago takes nothing away from a sample that has just arrived."""
    time.last_progress = 0.0
    one = Deadline(5)
    one.enter_queue(time)
    assert 5 == one.remaining()


def test_shared_deadline_lasts_for_the_most_patient(time: Time) -> None:
    """A shared call has the most patient waiter's timeout, limit and time left."""
    shared = SharedDeadline(Deadline(10), Deadline(50, limit=40), Deadline(30, limit=100))
    assert (50, 40, float("inf")) == (shared.timeout, shared.remaining(), shared.attempt_bounds[1])


def test_progress_of_a_shared_call(time: Time) -> None:
    """When the shared call is sent, everyone's timeout restarts."""
    impatient, patient = Deadline(10), Deadline(50)
    shared = SharedDeadline(impatient, patient)
    time.now += 30
    shared.start_attempt()
    assert (10, 50) == (impatient.remaining(), patient.remaining())


def test_joining_lengthens_an_attempt(time: Time) -> None:
    """An attempt in flight may take as long as the longest timeout of those who joined since it was sent."""
    shared = SharedDeadline(Deadline(20, limit=90))
    attempt = shared.start_attempt()
    time.now += 10
    shared.merge(SharedDeadline(Deadline(50, limit=30)))
    assert 40 == attempt.remaining()


def test_late_comer_waits_in_the_same_queue(time: Time) -> None:
    """Who joins while the call waits for its turn gains from the service's progress, and stops to when it is over."""
    first, second = Deadline(50), Deadline(20)
    shared = SharedDeadline(first)
    with shared.in_queue(time):
        shared.join(second)
        time.last_progress = time.now + 40
        assert (90, 60) == (first.remaining(), second.remaining())
    assert (50, 20) == (first.remaining(), second.remaining())


def test_queue_is_left_after_an_error(time: Time) -> None:
    """A call that breaks off in the queue no longer gains from the service's progress."""
    one = Deadline(5)
    shared = SharedDeadline(one)
    with pytest.raises(ZeroDivisionError), shared.in_queue(time):
        raise ZeroDivisionError
    time.last_progress = time.now + 50
    assert 5 == one.remaining()


def test_joining_twice(time: Time) -> None:
    """A caller that joins again, for another of its samples, gains and loses no more than by joining once."""
    one = Deadline(5)
    shared = SharedDeadline(one)
    other = SharedDeadline(one, Deadline(7))
    shared.merge(other)
    with shared.in_queue(time):
        time.last_progress = time.now + 1
        assert (6, 8) == (one.remaining(), shared.remaining())
    assert 5 == one.remaining()


@pytest.fixture
def slow_server(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reward server that takes 20 s by the client's clock for each batch, and that gets one at a time."""

    class Slow(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply({"reward_types": {"math": {"fingerprint": "f", "fields": []}}})

        def do_POST(self) -> None:
            items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["items"]
            clock.forward(20)
            self._reply({"scores": [{"value": 1.0, "status": "ok", "reason": ""} for _ in items]})

        def _reply(self, record: Any) -> None:
            data = json.dumps(record).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)
    monkeypatch.setattr(timing, "PROBE_AFTER", 3600.0)
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    with serving(Slow) as url:
        monkeypatch.setenv("REWARD_SERVER_URL", url)
        yield


@pytest.mark.usefixtures("slow_server")
def test_batch_behind_itself() -> None:
    """A batch that takes longer than a sample's timeout, but progresses, is scored to the end."""
    scores = score([Request("math", f"behind itself {at}", "1", {"timeout": 70}) for at in range(64 * 6)])
    assert {"ok"} == {one.status for one in scores}


@pytest.mark.usefixtures("slow_server")
def test_limit_of_a_call() -> None:
    """The call's own timeout ends such a batch all the same; what was scored by then stays scored."""
    requests = [Request("math", f"limited {at}", "1", {"timeout": 70}) for at in range(64 * 6)]
    statuses = [one.status for one in score(requests, timeout=70)]
    assert {"ok", "failed"} == set(statuses)
    assert "ok" == statuses[0] and "failed" == statuses[-1]


async def test_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request tells the server how many milliseconds the caller still waits: no more than the call's limit."""
    heads: list[str] = []
    handlers: set[asyncio.Task[None] | None] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError):
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if len(heads) > timing.FAILURES_TO_OPEN:  # the circuit has been open, so some time has passed
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    await ascore([Request("math", "with a header", "1", {"timeout": 90})], timeout=60)
    listener.close()
    await asyncio.wait([handler for handler in handlers if handler is not None])
    heads = [head for head in heads if not head.startswith("GET /health")]  # nobody waits for a probe
    left = [int(match.group(1)) for head in heads if (match := re.search(f"(?im)^{deadline.HEADER}: ([0-9]+)", head))]
    assert len(heads) == len(left) > 1
    assert 60_000 >= left[0] > left[-1] > 0


@pytest.mark.parametrize("seconds", [1e-9, 0.5, 1, 86_400])
def test_a_timeout_is_read(seconds: float) -> None:
    """Seconds above 0, up to a day, are a timeout."""
    assert seconds == deadline.read_timeout(seconds)


@pytest.mark.parametrize("value", [0, -1, -0.0, 86_401, 1e308, 10**400, math.inf, math.nan, True, "5", None, [1]])
def test_what_is_no_timeout(value: object) -> None:
    """Anything else is none."""
    assert deadline.read_timeout(value) is None


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("1500", 1.5), ("1e12", 86_400), ("1e308", 86_400)])
def test_a_header_is_read(text: str, seconds: float) -> None:
    """The header's milliseconds are seconds, a day at most."""
    assert seconds == deadline.read_header(text)


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "-inf", "-1", "1e309", "9" * 400])
def test_what_is_no_header(text: str) -> None:
    """What is not finite, below 0 or no number is none."""
    assert deadline.read_header(text) is None


async def test_a_cancellation_at_the_moment_of_the_result_is_not_lost() -> None:
    """A caller that is cancelled in the moment in which the result comes is cancelled; the work is, where it lasts."""
    result = asyncio.get_running_loop().create_future()
    caller = asyncio.create_task(run_with_timeout(60, result))
    await asyncio.sleep(0)
    result.set_result(1)
    caller.cancel()
    assert isinstance((await asyncio.gather(caller, return_exceptions=True))[0], asyncio.CancelledError)

    work = asyncio.get_running_loop().create_future()
    with pytest.raises(asyncio.TimeoutError):
        await run_with_timeout(0.001, work)  # expires: the work never ends
    assert work.cancelled()


EXTENDED = [(True, 9, 9), (False, 9, 5), (False, 2, 2), (False, None, 5)]


@pytest.mark.parametrize(("may_extend", "asked", "seconds"), EXTENDED)
def test_what_a_scorer_is_given(may_extend: bool, asked: float | None, seconds: float) -> None:
    """A sample's own timeout is longer than its scorer's only where it may be."""
    scorer = cast(Any, SimpleNamespace(timeout=5))
    assert seconds == Context(timeout=asked, may_extend=may_extend).timeout_of(scorer)
