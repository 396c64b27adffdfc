"""Overload and outage: waited out, never a score, and not made worse by the client's own attempts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rewardstack import Request, Score, score
from rewardstack.transport import timing
from tests.client.conftest import Script
from tests.support.servers import FaultServer, fault_server, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

SAMPLES = 640
Change = Callable[[FaultServer], None]


@pytest.fixture
def no_hedges(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is sent a second time because the machine is slow."""
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)


def requests(label: str, **extra: object) -> list[Request]:
    """As many different samples as the tests score."""
    return [Request("math", f"{label} {at}", "1", extra) for at in range(SAMPLES)]


def after(seconds: float, change: Callable[[], None]) -> threading.Timer:
    """Runs `change` later."""
    timer = threading.Timer(seconds, change)
    timer.start()
    return timer


def statuses(scores: list[Score]) -> set[str]:
    """The different statuses, with the reasons of those that are not ok."""
    return {one.status if one.status == "ok" else f"{one.status}: {one.reason}" for one in scores}


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("refusal", [429, 503])
def test_seconds_of_refusals(server: FaultServer, no_hedges: None, refusal: int, seconds: int) -> None:
    """Seconds of 429 or 503 under a deadline of 60 s leave every sample `ok`, with hardly an attempt wasted."""
    score([Request("math", "warm")])
    server.set(mode=str(refusal))
    timer = after(seconds, lambda: server.set(mode="ok"))
    assert {"ok"} == statuses(score(requests("refused")))
    timer.join()
    counts = server.stats()
    assert counts["scored"] == SAMPLES + 1
    assert counts["items"] - counts["scored"] <= 1.2 * SAMPLES


def test_refusals_from_the_first_request(server: FaultServer) -> None:
    """A server that refuses before it ever answered, even to tell its reward types, costs no sample either."""
    server.set(mode="503", types_refused=True)
    timer = after(2, lambda: server.set(mode="ok", types_refused=False))
    assert {"ok"} == statuses(score(requests("early")))
    timer.join()


@pytest.mark.parametrize("refusal", [408, 504])
def test_refusals_for_now(server: FaultServer, refusal: int) -> None:
    """A request that came too slowly, or that a gateway lost, is sent again, more often than a server's errors are."""
    score([Request("math", "warm")])
    server.set(mode=str(refusal))
    timer = after(2, lambda: server.set(mode="ok"))
    assert {"ok"} == statuses(score([Request("math", f"sent again after {refusal}")]))
    timer.join()


def test_retry_after_is_honored(server: FaultServer) -> None:
    """A server that asks for three seconds is left alone for three seconds."""
    score([Request("math", "warm")])
    before = len(server.stats()["arrivals"])
    server.set(mode="503", headers={"Retry-After": "3"})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(score, [Request("math", "patient")])
        eventually(lambda: len(server.stats()["arrivals"]) > before)
        server.set(mode="ok")
        assert {"ok"} == statuses(running.result())
    refused, again, *_ = server.stats()["arrivals"][before:]
    assert again >= refused + 3


def test_retry_after_beyond_the_deadline(server: FaultServer) -> None:
    """A server that asks for more time than there is, is not waited for."""
    score([Request("math", "warm")])
    server.set(mode="429", headers={"Retry-After": "3600"})
    (one,) = score([Request("math", "late", "1", {"timeout": 1800})])
    assert "failed" == one.status and "Retry-After of 3600 s" in one.reason


def _refuse(server: FaultServer) -> None:
    server.set(mode="503")


def _recover(server: FaultServer) -> None:
    server.set(mode="ok")


@pytest.mark.parametrize("seconds", [2.4, pytest.param(30.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("begin", "end"),
    [(_refuse, _recover), (FaultServer.freeze, FaultServer.thaw)],
    ids=["refuses", "frozen"],
)
def test_attempts_in_an_outage(server: FaultServer, begin: Change, end: Change, seconds: float) -> None:
    """In an outage the server is sent at most 1.2 attempts a sample, however the samples arrive."""
    score([Request("math", "warm")])
    begin(server)
    results: list[Score] = []
    lock = threading.Lock()

    def one(at: int) -> None:
        found = score([Request("math", f"outage {at}", "1")])
        with lock:
            results.extend(found)

    threads = [threading.Thread(target=one, args=(at,)) for at in range(100)]
    for at, thread in enumerate(threads):
        thread.start()
        time.sleep(seconds / 3 / 50 if at < 50 else 0)
    time.sleep(seconds * 2 / 3)
    end(server)
    for thread in threads:
        thread.join()
    assert {"ok"} == statuses(results)
    counts = server.stats()
    assert counts["items"] - counts["scored"] <= 1.2 * len(threads)


@pytest.mark.parametrize("fault", ["dead", "frozen", "refuses"])
def test_one_of_two_urls(server: FaultServer, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """With one of two URLs dead, stopped or refusing, every sample is `ok`."""
    monkeypatch.setattr(timing, "PROBE_AFTER", 0.5)
    with fault_server() as other:
        monkeypatch.setenv("REWARD_SERVER_URL", f"{other.url},{server.url}")
        score(requests("both"))
        assert other.stats()["scored"] > 0 < server.stats()["scored"]
        if fault == "dead":
            other.kill()
        elif fault == "frozen":
            other.freeze()
        else:
            other.set(mode="503")
        assert {"ok"} == statuses(score(requests(fault)))


def test_url_that_dies_in_mid_run(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """When one of two URLs dies with requests in flight, these are scored by the other."""
    with fault_server() as other:
        monkeypatch.setenv("REWARD_SERVER_URL", f"{other.url},{server.url}")
        score([Request("math", "warm")])
        before = other.stats()["requests"]
        other.set(mode="hold")
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(score, requests("mid-run"))
            eventually(lambda: other.stats()["requests"] > before)
            other.kill()
            assert {"ok"} == statuses(running.result())


def test_circuit_closes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away fails its samples in their time; when it comes back the next ones are scored."""
    port = free_port()
    monkeypatch.setenv("REWARD_SERVER_URL", f"http://127.0.0.1:{port}")

    def tells_why() -> bool:
        (one,) = score([Request("math", "away", "1", {"timeout": 1.0})])  # expires
        assert ("failed", 0.0) == (one.status, one.value)
        return "Connect" in one.reason

    eventually(tells_why)
    with fault_server(port):
        (one,) = score([Request("math", "back")])
        assert "ok" == one.status


@pytest.mark.parametrize("fault", ["500", "garbage", "short", "nan"])
def test_server_that_answers_wrongly(server: FaultServer, no_hedges: None, fault: str) -> None:
    """An answer that is none is tried again a few times out of a budget, then the sample is `failed`, never a score."""
    server.set(mode=fault)
    scores = score(requests(fault))
    failed = [one for one in scores if one.status == "failed"]
    assert {"failed"} == {one.status for one in failed} and all(one.value == 0.0 for one in failed)
    assert len(failed) == (SAMPLES if fault != "nan" else SAMPLES // 64)
    assert server.stats()["requests"] <= SAMPLES // 64 * 1.1 + 10


def test_large_batch_does_not_time_out_behind_itself(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that wait for their turn while the service makes progress do not run out of time."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    server.set(delay=0.55)  # ten requests, one after another, take longer than the timeout
    scores = score(requests("queue", timeout=5))
    assert {"ok"} == statuses(scores)


def test_deadline_while_a_gateway_is_looked_for(server: FaultServer) -> None:
    """A deadline that comes after the refusal, while the client asks whether a gateway refused, ends as a failure."""
    score([Request("math", "warm")])
    server.set(mode="529", headers={"X-Gateway": "least_conn"})

    def tells_why() -> bool:
        [one] = score([Request("math", "late", "1", {"timeout": 0.6})])  # expires
        assert one.status == "failed"
        return "529" in one.reason

    eventually(tells_why)


def test_limit_of_a_call(server: FaultServer) -> None:
    """The call's own limit ends it, whatever the service does."""
    server.set(mode="hang")
    assert {"failed"} == {one.status for one in score(requests("limit", timeout=3600), timeout=0.5)}  # expires


FEW_DESCRIPTORS = """
    import logging, resource
    from rewardstack import Request, score

    warnings = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())
    handler.addFilter(lambda record: not record.name.startswith("rewardstack.transport"))  # the server may be slow
    logging.getLogger("rewardstack").addHandler(handler)
    resource.setrlimit(resource.RLIMIT_NOFILE, (90, 90))
    for label in ("a", "b"):
        scores = score([Request("math", f"{label} {at}") for at in range(64 * 100)])
        assert {"ok"} == {one.status for one in scores}, scores[0]
    print(len(warnings), warnings[0])
"""


def test_few_file_descriptors(server: FaultServer, run_script: Script) -> None:
    """Where few files may be open, fewer connections are made, with one warning that says how to raise the limit."""
    server.set(delay=0.02)
    out = run_script(FEW_DESCRIPTORS, timeout=240)
    assert out.startswith("1 only ") and "ulimit -n" in out
    assert 0 < server.stats()["max_concurrent"] <= 90 - 64
