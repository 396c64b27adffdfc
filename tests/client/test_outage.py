"""A server that is away costs one timeout in all, whatever asks for it; one that comes back is found."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress

import pytest

from rewardstack import Request, Score, ascore, score
from rewardstack.pipeline import missing
from rewardstack.transport import timing
from tests.support.clock import Clock
from tests.support.servers import ROOT, FaultServer, fault_server, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

WORKERS = 8
TIMEOUT = 5.0
LONG = 300.0
"""Timeout of a sample that must not wait for it; one that does meets pytest's own limit."""
FAST = "failing fast until a health probe succeeds"
STALLED = "failing fast until a request succeeds"
REFUSED = "connection refused (is the server running?)"
WORDS = {"refused": [REFUSED], "silent": ["accepts connections but does not answer", "no answer even to GET /health"]}


@pytest.fixture(autouse=True, params=[0.4, pytest.param(1.0, marks=pytest.mark.nightly)])
def pace(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The factor of all times in a test; at 1 the client's own hold."""
    factor = float(request.param)
    for name in ("PROBE_AFTER", "HEALTH_TIMEOUT", "LOG_AFTER", "PROBE_TIMEOUT"):
        monkeypatch.setattr(timing, name, factor * getattr(timing, name))
    return factor


@pytest.fixture
def count(pace: float) -> int:
    """The number of samples."""
    return 1024 if pace == 1 else 64


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A socket that listens, and whose connections nobody accepts."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


@pytest.fixture
def dead(request: pytest.FixtureRequest, silent: socket.socket, monkeypatch: pytest.MonkeyPatch, pace: float) -> str:
    """What is wrong with the reward server that the environment names."""
    port = silent.getsockname()[1] if request.param == "silent" else free_port()
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", f"{pace * TIMEOUT}")
    return str(request.param)


def samples(count: int, **extra: float) -> list[Request]:
    """As many samples, all of them new."""
    return [Request("math", uuid.uuid4().hex, "1", {**extra}) for _ in range(count)]


def one_by_one(requests: list[Request]) -> list[Score]:
    """Score samples as verl does, one a call in a pool of threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return [*pool.map(lambda one: score([one])[0], requests)]


def concurrently(requests: list[Request]) -> list[Score]:
    """Score samples as verl's reward loop does, one a call on an event loop."""

    async def together() -> list[Score]:
        return [one for (one,) in await asyncio.gather(*(ascore([one]) for one in requests))]

    return asyncio.run(together())


def skip_hours(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two hours of an outage pass at once: timeouts of minutes have then ended, and what was due then is due."""
    monkeypatch.setattr(timing, "OUTDATED_AFTER", math.inf)
    clock.forward(7200)


def find_away(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Score samples until the dead server is known to be away; later samples fail fast, however long their timeout."""
    eventually(lambda: FAST in score(samples(1))[0].reason)
    skip_hours(clock, monkeypatch)


@pytest.mark.parametrize("dead", ["refused", "silent"], indirect=True)
@pytest.mark.parametrize("call", [one_by_one, concurrently])
def test_one_timeout_is_all(
    dead: str,
    call: Callable[[list[Request]], list[Score]],
    count: int,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A dead server costs its timeout once, not once a worker and wave; every sample is `failed`, with the cause."""
    assert {"failed"} == {one.status for one in call(samples(count))}
    find_away(clock, monkeypatch)
    missing.missing_warnings.log_repeats(math.inf)
    caplog.clear()
    found = call(samples(count, timeout=LONG))

    assert {"failed"} == {one.status for one in found}
    assert all(FAST in one.reason for one in found)
    said = [record.getMessage() for record in caplog.records if "samples failed" in record.getMessage()]
    assert said and all("127.0.0.1" in line for line in said)


@pytest.mark.parametrize("dead", ["refused", "silent"], indirect=True)
def test_later_samples_fail_fast(dead: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that comes while the server is away fails with the same cause, and without its timeout."""
    find_away(clock, monkeypatch)
    (later,) = score(samples(1, timeout=LONG))

    assert "failed" == later.status
    assert any(words in later.reason for words in WORDS[dead])
    assert FAST in later.reason


@pytest.fixture
def taken(silent: socket.socket) -> Iterator[list[socket.socket]]:
    """The connections that were made to `silent`, which accepts them here and never answers."""
    found: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                found.append(silent.accept()[0])

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield found
    silent.shutdown(socket.SHUT_RDWR)
    thread.join()
    for one in found:
        one.close()


@pytest.mark.parametrize("dead", ["silent"], indirect=True)
def test_probes_are_few(
    dead: str, taken: list[socket.socket], count: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that accepts and never answers is asked by a few probes, not by every sample that comes."""
    monkeypatch.setattr(timing, "PROBE_PAUSES", (3600.0, 3600.0))  # probes are no more if the samples take long
    score(samples(count))
    find_away(clock, monkeypatch)
    before = len(taken)
    assert {"failed"} == {score(samples(1, timeout=LONG))[0].status for _ in range(200)}
    assert len(taken) - before <= 3


@pytest.mark.parametrize("dead", ["silent"], indirect=True)
def test_nobody_waits_for_a_probe(dead: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that come while a silent server is away are told at once, however long the probes take."""
    monkeypatch.setattr(timing, "PROBE_TIMEOUT", LONG)
    find_away(clock, monkeypatch)
    for _ in range(10):
        (later,) = score(samples(1, timeout=LONG))
        assert "failed" == later.status and FAST in later.reason


@pytest.fixture
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A server of a service that the environment names; it answers each probe of its health."""
    monkeypatch.setenv("REWARD_CACHE", "off")
    server = FaultServer(script=ROOT / "tests/support/replica.py")
    monkeypatch.setattr(timing, "HEALTH_TIMEOUT", 60.0)
    monkeypatch.setattr(timing, "PROBE_TIMEOUT", 5.0)
    monkeypatch.setattr(timing, "PROBE_PAUSES", (0.2, 0.5))
    monkeypatch.setenv(f"{request.param}_URL", server.url)
    yield server
    server.kill()


SOURCES = {"LLM_JUDGE_SERVER": "llm_judge_remote", "EMBEDDING_SERVER": "embedding_remote", "REWARD_SERVER": "math"}


@pytest.mark.parametrize(("service", "source"), SOURCES.items(), indirect=["service"])
def test_a_lost_discovery_request(service: FaultServer, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the reply to the first GET is lost, the GET is sent again once the server has answered /health."""
    monkeypatch.setattr(timing, "MIN_STUCK", 0.5)  # expires: the reply is lost
    service.set(lost=1)
    scores = score([Request(source, f"a {at}", "1", {"problem": "p", "timeout": 60}) for at in range(8)])
    assert {"ok"} == {one.status for one in scores}, scores[0].reason


@pytest.mark.parametrize("ill", ["hang", "503", "429"])
@pytest.mark.parametrize(("service", "source"), SOURCES.items(), indirect=["service"])
def test_a_stall_costs_one_timeout(
    service: FaultServer, source: str, ill: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers /health and swallows or refuses work gets a few trials, not every batch, until it works."""
    variable = next(name for name in SOURCES if SOURCES[name] == source)
    monkeypatch.setenv(f"{variable}_TIMEOUT", "1")  # expires while the server is ill
    for name in ("EJECTION_FIRST", "EJECTION_MAX"):
        monkeypatch.setattr(timing, name, 3600.0)  # no second trial is due while it is ill

    def batch(**extra: float) -> list[Score]:
        requests = [Request(source, one.solution_str, "1", {"problem": "p", **extra}) for one in samples(8)]
        return score(requests, on_error="none")

    assert {"ok"} == {one.status for one in batch(timeout=60)}
    service.set(ill=ill)
    assert {"failed"} == {one.status for one in batch()}
    eventually(lambda: any(STALLED in one.reason for one in batch()))
    before = service.stats()["requests"]
    for _ in range(20):
        assert {"failed"} == {one.status for one in batch()}
    assert service.stats()["requests"] - before <= 4
    service.set(ill="")
    skip_hours(clock, monkeypatch)
    eventually(lambda: {"ok"} == {one.status for one in batch()})


def test_a_sample_that_takes_too_long_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample that a judge does not answer in time costs the next one nothing."""
    monkeypatch.setenv("REWARD_CACHE", "off")
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "5")
    server = FaultServer(script=ROOT / "tests/support/replica.py")
    try:
        monkeypatch.setenv("LLM_JUDGE_SERVER_URL", server.url)
        for ill, status in (("hang", "failed"), ("", "ok")):
            server.set(ill=ill)
            assert status == score([Request("llm_judge_remote", "alone", "1", {"problem": "p"})])[0].status
    finally:
        server.kill()


@pytest.mark.parametrize("seconds", [0.5, 4.0, *(pytest.param(one, marks=pytest.mark.nightly) for one in (8.0, 20.0))])
def test_a_restart_is_waited_for(server: FaultServer, seconds: float, pace: float) -> None:
    """A server that refuses connections for a part of its timeout costs no sample."""
    assert "ok" == score([Request("math", "before", "1")])[0].status
    server.kill()
    with ThreadPoolExecutor(WORKERS) as pool:
        calls = [pool.submit(score, [Request("math", f"restart {at}", "1")]) for at in range(4 * WORKERS)]
        time.sleep(pace * seconds)
        with fault_server(server.port):
            assert {"ok"} == {call.result()[0].status for call in calls}


def test_refused_is_known_soon(server: FaultServer, monkeypatch: pytest.MonkeyPatch, pace: float) -> None:
    """Where the setting says so, a refused connection ends the wait long before a long timeout does."""
    monkeypatch.setenv("REWARD_SERVER_REFUSED_TIMEOUT", f"{pace * 5}")
    assert "ok" == score([Request("math", "before", "1")])[0].status
    server.kill()
    (refused,) = score([Request("math", "refused", "1", {"timeout": 3600})])

    assert "failed" == refused.status
    assert refused.reason.startswith(f"{server.url}/v1/score: {REFUSED}")


@pytest.mark.parametrize("fault", ["killed", "frozen"])
def test_it_is_found_when_it_is_back(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, fault: str, pace: float
) -> None:
    """Samples are scored again soon after the server is back, without anything being done."""
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", f"{pace * 3}")  # expires while the server is away
    assert "ok" == score([Request("math", "before", "1", {"timeout": 60})])[0].status
    server.kill() if fault == "killed" else server.freeze()
    assert {"failed"} == {score([Request("math", f"away {at}", "1")])[0].status for at in range(4)}
    with fault_server(server.port) if fault == "killed" else nullcontext():
        if fault == "frozen":
            server.thaw()
        eventually(lambda: score([Request("math", f"back {time.monotonic()}", "1")])[0].status == "ok")
        assert {"ok"} == {one.status for one in score(samples(640, timeout=60))}


def test_the_patient_wait_on(server: FaultServer, pace: float) -> None:
    """What may wait longer is not ended by what gave up sooner: its own timeout counts, from when the server went."""
    assert "ok" == score([Request("math", "before", "1")])[0].status
    server.freeze()
    with ThreadPoolExecutor(2) as pool:
        patient = pool.submit(score, [Request("math", "patient", "1", {"timeout": 60})])
        hasty = pool.submit(score, samples(128, timeout=pace * 3))  # expires
        assert {"failed"} == {one.status for one in hasty.result()}
        later = pool.submit(score, [Request("math", "later", "1", {"timeout": 60})])
        time.sleep(pace * 3)
        server.thaw()
        assert ["ok", "ok"] == [one.result()[0].status for one in (patient, later)]
