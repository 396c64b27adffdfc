"""Equivalent servers, one of which is ill: samples are scored by the other one, and by both once it has recovered."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from rewardstack import Request, Score, score
from rewardstack.transport import timing
from rewardstack.transport.attempt import Attempt
from rewardstack.transport.server import Server
from rewardstack.transport.servers import Servers
from tests.support.servers import ROOT, FaultServer
from tests.support.table import Table
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

REPLICA = ROOT / "tests/support/replica.py"
SERVICES = {
    "judge": ("LLM_JUDGE_SERVER_URL", "llm_judge_remote", 1),
    "embedding": ("EMBEDDING_SERVER_URL", "embedding_remote", 32),
    "reward server": ("REWARD_SERVER_URL", "math", 64),
}
"""Of a service: the variable of its servers, a data source, and samples in a request at most."""
ILL = ("500", "slow", "404", "401", "html", "empty", "error", "503", "529", "522", "hang", "reset", "refuse")
WORKERS = 64
Run = Callable[[list[Request]], list[Score]]
Serve = Callable[[], FaultServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts replicas, which are gone afterwards."""
    monkeypatch.setenv("REWARD_CACHE", "off")
    with ExitStack() as started:

        def start() -> FaultServer:
            server = FaultServer(script=Path(REPLICA))
            started.callback(server.kill)
            return server

        yield start


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds takes tenths of them."""
    for name, seconds in (
        ("MIN_STUCK", 0.3),
        ("RETRY_PAUSE", 0.1),
        ("LOADING_PAUSE", 0.1),
        ("EJECTION_FIRST", 0.2),
        ("EJECTION_MAX", 0.5),
    ):
        monkeypatch.setattr(timing, name, seconds)


@pytest.fixture
def no_hedges(soon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is sent a second time because the machine is slow, and no fault is final because the test is."""
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)
    monkeypatch.setattr(timing, "FAULTY_FOR", 3600.0)


def samples(source: str, count: int) -> list[Request]:
    """As many samples, all of them different."""
    run = uuid.uuid4().hex
    return [
        Request(source, f"{run} {at} {'x' * (at % 50)}", f"reference {at}", {"problem": "p"}) for at in range(count)
    ]


def in_one_call(requests: list[Request]) -> list[Score]:
    """Score a batch."""
    return score(requests, on_error="none")


def in_many_calls(requests: list[Request]) -> list[Score]:
    """Score samples as trainers do that score one a call, in many threads."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return [*pool.map(lambda one: score([one], on_error="none")[0], requests)]


def share_of_ok(scores: list[Score]) -> float:
    """The share of the scores that are `ok`."""
    return sum(one.status == "ok" for one in scores) / len(scores)


def pair(serve: Serve, monkeypatch: pytest.MonkeyPatch, service: str, ill: str) -> tuple[FaultServer, FaultServer]:
    """Two servers of a service, of which the first is ill."""
    first, second = serve(), serve()
    monkeypatch.setenv(SERVICES[service][0], f"{first.url},{second.url}")
    first.kill() if ill == "refuse" else first.set(ill=ill)
    return first, second


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("run", [in_one_call, pytest.param(in_many_calls, marks=pytest.mark.nightly)])
def test_one_is_ill(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None, table: Table, service: str, run: Run
) -> None:
    """However one of two replicas is ill, every sample is scored by the other one."""
    for ill in ILL:
        with table.case(ill):
            pair(serve, monkeypatch, service, ill)
            scores = run(samples(SERVICES[service][1], 128))
            assert share_of_ok(scores) == 1, next(one.reason for one in scores if one.status != "ok")


def test_one_that_hangs_is_left_out(serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None) -> None:
    """A replica that answers /health alone is left out after three requests that the other one answered first."""
    monkeypatch.setattr(timing, "EJECTION_FIRST", 3600.0)
    monkeypatch.setattr(timing, "EJECTION_MAX", 3600.0)
    silent, _ = pair(serve, monkeypatch, "judge", "hang")

    check = Servers._check_attempt

    def check_silent(self: Servers, server: Server, attempt: Attempt) -> float:
        return check(self, server, attempt) if server.url == silent.url and not attempt.hedges else 3600.0

    monkeypatch.setattr(Servers, "_check_attempt", check_silent)  # the other one is never stuck
    for request in samples(SERVICES["judge"][1], 30):
        assert [one.status for one in score([request])] == ["ok"]
    assert silent.stats()["requests"] <= timing.FAILURES_TO_OPEN + 1


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("run", [in_one_call, in_many_calls])
@pytest.mark.parametrize("ill", ILL)
def test_one_of_many_is_ill(serve: Serve, monkeypatch: pytest.MonkeyPatch, service: str, run: Run, ill: str) -> None:
    """Of 1,024 samples 99 % are scored, and the ill replica gets at most half as many requests as the other one."""
    monkeypatch.setattr(timing, "GROWTH_SECONDS", 3600.0)  # on a busy machine, failures take long
    first, second = pair(serve, monkeypatch, service, ill)
    scores = run(samples(SERVICES[service][1], 1024))
    assert share_of_ok(scores) >= 0.99, next(one.reason for one in scores if one.status != "ok")
    if ill != "refuse":
        assert first.stats()["requests"] <= second.stats()["requests"] / 2


@pytest.mark.parametrize("service", SERVICES)
def test_one_hangs_while_the_other_recovers(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None, service: str
) -> None:
    """Requests that hang on one replica go to the other, which was left out for errors, once it is healthy."""
    monkeypatch.setattr(timing, "FAULTY_FOR", 3600.0)
    _, second = pair(serve, monkeypatch, service, "hang")
    second.set(ill="500")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(in_one_call, samples(SERVICES[service][1], 128))
        eventually(partial(has_asked, second, 1))
        time.sleep(0.5)
        second.set(ill="")
        scores = running.result()
    assert share_of_ok(scores) == 1, next(one.reason for one in scores if one.status != "ok")


def test_one_hangs_while_the_budget_is_empty(serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None) -> None:
    """Requests that hang are sent to the other replica even if no retries are left."""
    monkeypatch.setattr(timing, "RETRY_RESERVE", 0.0)
    pair(serve, monkeypatch, "judge", "hang")
    assert share_of_ok(in_one_call(samples("llm_judge_remote", 8))) == 1  # they earn less than one retry


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("ill", ["500", "404", "html", "503", "hang"])
def test_it_recovers(serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None, service: str, ill: str) -> None:
    """A replica that recovers in the middle of a run gets requests again, and no sample is lost."""
    first, _ = pair(serve, monkeypatch, service, ill)
    source = SERVICES[service][1]
    assert share_of_ok(in_many_calls(samples(source, 128))) == 1
    first.set(ill="")

    def is_used() -> bool:
        assert share_of_ok(in_many_calls(samples(source, 32))) == 1
        return bool(first.stats().get("answered"))

    eventually(is_used)


def has_asked(server: FaultServer, count: int) -> bool:
    """Whether a server has got so many requests."""
    return bool(server.stats()["requests"] >= count)


KINDS = ("408", "425", "429", "500", "501", "502", "503", "504", "520", "524", "529", "html", "empty", "error")


def test_a_single_one_is_ill_for_a_moment(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, no_hedges: None, table: Table
) -> None:
    """A transient fault of the only server costs no sample, however many requests meet it at the same time."""
    for ill in KINDS:
        with table.case(ill):
            server = serve()
            monkeypatch.setenv("LLM_JUDGE_SERVER_URL", server.url)
            server.set(ill=ill, until=32)
            scores = in_one_call(samples("llm_judge_remote", 32))
            assert share_of_ok(scores) == 1, scores[0].reason
            assert server.stats()["requests"] < 4 * 32


@pytest.mark.parametrize("ill", ["500", "html", "401", "404"])
def test_a_single_one_is_ill_for_good(serve: Serve, monkeypatch: pytest.MonkeyPatch, no_hedges: None, ill: str) -> None:
    """What stays ill is tried a few times in all, not by every sample; the reason names the server and its words."""
    monkeypatch.setattr(timing, "FAULTY_FOR", 0.8)
    server = serve()
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", server.url)
    server.set(ill=ill)
    scores = in_one_call(samples("llm_judge_remote", 100))
    assert {"failed"} == {one.status for one in scores}
    words = "maintenance" if ill == "html" else "it is ill"
    assert all(f"{server.url}/v1/chat/completions" in one.reason and words in one.reason for one in scores)
    asked = server.stats()["requests"]
    assert asked <= (200 if ill == "404" else 1.1 * 100 + 10)
    in_many_calls(samples("llm_judge_remote", 100))
    assert server.stats()["requests"] - asked <= (200 if ill == "404" else 1.1 * 100 + 10)


def test_poison(serve: Serve, monkeypatch: pytest.MonkeyPatch, soon: None) -> None:
    """A text that the embedding server fails at costs its own sample the score, and no other of its batch."""
    server = serve()
    monkeypatch.setenv("EMBEDDING_SERVER_URL", server.url)
    server.set(poison="VENOM")
    requests = samples("embedding_remote", 30)
    for at in (7, 20):
        requests[at].solution_str = f"VENOM {at}"
    scores = score(requests)
    assert {7: "fallback", 20: "fallback"} == {at: one.status for at, one in enumerate(scores) if one.status != "ok"}


@pytest.mark.parametrize("service", ["embedding", "reward server"])
def test_too_large(serve: Serve, monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    """A batch that a proxy finds too large is sent in parts; one sample that is too large is told so alone."""
    server = serve()
    variable, source, _ = SERVICES[service]
    monkeypatch.setenv(variable, server.url)
    server.set(bytes=30_000)
    requests = samples(source, 64)
    for one in requests:
        one.solution_str += " so" * 1000
    requests[5].solution_str += " so" * 20_000
    scores = score(requests, on_error="none")
    lost = {at: one.reason for at, one in enumerate(scores) if one.status != "ok"}
    assert [5] == [*lost] and "too large for the server" in lost[5] and "413" in lost[5]


def test_at_its_limit(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that holds 32 requests is sent at most 1.2 times the requests, from the first call."""
    server = serve()
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", server.url)
    monkeypatch.setattr(timing, "GROWTH_SECONDS", 3600.0)  # on a busy machine, refusals take long
    monkeypatch.setattr(timing, "MIN_STUCK", 3600.0)  # and so do replies, which would be hedged
    server.set(limit=32)
    assert share_of_ok(in_one_call(samples("llm_judge_remote", 640))) == 1
    assert server.stats()["requests"] <= 1.2 * 640
