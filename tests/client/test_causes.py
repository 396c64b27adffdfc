"""Why an answer did not come: every reason says what was last known of the server, and what lasts is in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable

import pytest

from rewardstack import Request, score
from rewardstack.errors import OverloadError, UnreachableError
from rewardstack.transport import endpoint
from rewardstack.transport.endpoint import EndpointFailure
from tests.support.servers import FaultServer, free_port

SAID = "retrying"
LIMIT = r"retrying for up to \d+ s"


def reasons(count: int = 3, **extra: object) -> set[str]:
    """The different reasons of samples that all fail."""
    scores = score([Request("math", f"caused {at}", "1", extra) for at in range(count)])
    assert {"failed"} == {one.status for one in scores}
    return {one.reason for one in scores}


CAUSES: dict[str, tuple[Callable[[FaultServer], object], float, list[str]]] = {
    "dead": (FaultServer.kill, 0.5, ["{url}/", "connection refused", r"\('127.0.0.1', {port}\)"]),
    "stopped": (
        FaultServer.freeze,
        0.5,
        [r"{url} has sent nothing for \d\.\d s \(1 request of this process in flight\)"],
    ),
    "silent": (
        FaultServer.freeze,
        1.5,
        [r"{url}: no answer even to GET /health; {url} (accepted the connection and )?has sent nothing for \d"],
    ),
    "stopped for long": (FaultServer.freeze, 1.5, ["{url}: accepts connections but does not answer"]),
    "refuses": (lambda server: server.set(mode="503"), 1.2, [r"{url}/v1/score returned 503: mode 503 \(\d+ times\)"]),
    "busy": (
        lambda server: server.set(delay=60),
        1.2,
        ["{url} is up and is working on 1 request of this process, the oldest"],
    ),
}
TIMEOUTS = {
    "stopped": {"HEALTH_TIMEOUT": 60.0, "LOG_AFTER": 60.0},
    "silent": {"HEALTH_TIMEOUT": 60.0, "LOG_AFTER": 0.2},
    "stopped for long": {"HEALTH_TIMEOUT": 0.2, "LOG_AFTER": 60.0},
}
"""When more is known about a server: before the samples' timeout, or never."""


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("cause", CAUSES)
def test_every_reason_has_its_cause(server: FaultServer, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    """The reason of a sample that waited in vain names the server: gone, silent, refusing or busy."""
    for name, seconds in ({"PROBE_AFTER": 0.1} | TIMEOUTS.get(cause, {})).items():
        monkeypatch.setattr(endpoint, name, seconds)
    assert "ok" == score([Request("math", "warm")])[0].status
    befall, timeout, says = CAUSES[cause]
    befall(server)
    patterns = [words.format(url=server.url, port=server.port) for words in says]
    for reason in reasons(timeout=timeout):
        assert [] == [pattern for pattern in patterns if not re.search(pattern, reason)], reason


def test_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose name does not resolve is called that."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("REWARD_SERVER_URL", "http://nowhere.invalid:6000")
    (reason,) = reasons(timeout=3)
    assert "http://nowhere.invalid:6000/v1/reward_types: host not found: " in reason


@pytest.mark.usefixtures("needs_process")
def test_https_to_a_server_without_tls(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL with https for a server that speaks plain HTTP is named as such."""
    monkeypatch.setenv("REWARD_SERVER_URL", server.url.replace("http:", "https:"))
    (reason,) = reasons(timeout=0.7)
    assert "the server does not use TLS; write http:// in place of https://" in reason


def test_samples_behind_others_have_the_cause(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What still waits for its turn at the deadline is told of the server as well."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    assert {True} == {f"{server.url} has sent nothing for" in reason for reason in reasons(200, timeout=0.7)}


def test_the_calls_own_limit_is_named(server: FaultServer) -> None:
    """Where the call's limit ends it, the reason says so many seconds, not the service's timeout."""
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    (one,) = score([Request("math", "limited")], timeout=0.7)
    found = re.match(r"no answer within ([0-9.]+) s; ", one.reason)
    assert found and 0 < float(found[1]) <= 0.7 and server.url in one.reason


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lasts is said after a tenth of a second."""
    monkeypatch.setattr(endpoint, "LOG_AFTER", 0.1)


@pytest.mark.parametrize("mode", ["gone", "503"])
def test_said_once_while_it_lasts(soon: None, server: FaultServer, caplog: pytest.LogCaptureFixture, mode: str) -> None:
    """While samples wait the log says once which server it is and what is wrong with it, before the deadline."""
    assert "ok" == score([Request("math", "warm")])[0].status
    server.kill() if mode == "gone" else server.set(mode=mode)
    with caplog.at_level(logging.WARNING, "rewardstack"):
        reasons(300, timeout=0.8)
    (line,) = [record for record in caplog.records if SAID in record.getMessage()]
    (end,) = [record for record in caplog.records if "300 of 300 samples failed" in record.getMessage()]
    assert line.created < end.created - 0.1
    assert line.getMessage().startswith(f"{server.url}/v1/score") and re.search(LIMIT, line.getMessage())


@pytest.mark.nightly
def test_silence_is_said_after_three_seconds(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that accepts connections and sends nothing is in the log while the samples still wait."""
    assert_silence_is_said(server, monkeypatch, caplog, timeout=6.0, seconds="[345]")


def test_silence_is_said(
    soon: None, server: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same with a server whose silence is noticed and logged sooner."""
    monkeypatch.setattr(endpoint, "PROBE_AFTER", 0.1)
    monkeypatch.setattr(endpoint, "LOG_AFTER", 0.1)
    assert_silence_is_said(server, monkeypatch, caplog, timeout=0.8, seconds="[01]")


def assert_silence_is_said(
    server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    timeout: float,
    seconds: str,
) -> None:
    """Score samples that a server never answers, and compare the log with the server's silence."""
    monkeypatch.setattr(endpoint, "HEALTH_TIMEOUT", 60.0)
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    caplog.clear()  # on a busy machine that answer, too, may have been slow enough to be logged
    with caplog.at_level(logging.WARNING, "rewardstack"):
        reasons(timeout=timeout)
    line, _ = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(f"{server.url}: no answer even to GET /health; unavailable for {seconds} s, {LIMIT}", line)


async def test_incidents(soon: None, caplog: pytest.LogCaptureFixture) -> None:
    """What is over soon is not said, nor what nobody waits for; each failure that lasts is said once."""
    awaited = ["for up to 5 s"]
    one = EndpointFailure(lambda: awaited[0])
    refused = OverloadError("refuses"), OverloadError("refuses still")
    one.record(refused[0])
    one.reset()
    await asyncio.sleep(0.15)
    awaited[0] = ""
    one.record(UnreachableError("nobody asks"))
    await asyncio.sleep(0.15)
    assert "" == caplog.text
    one.reset()
    awaited[0] = "for up to 5 s"
    for error in refused * 2:
        one.record(error)
        await asyncio.sleep(0.06)
    assert "refuses still (4 times)" == str(one)
    assert 1 == caplog.text.count(SAID)
    one.reset()
    assert one.error is None


def test_scripts_try_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts that try a server go through all checks where nobody is there, and report each."""
    from tests import test_llm_judge_remote_server_integration as judges
    from tests import test_server_connectivity as embeddings

    for script in (embeddings, judges):
        monkeypatch.setattr(script, "BRIEF", 0.2)
    url = f"http://127.0.0.1:{free_port()}"
    assert len(embeddings.CHECKS) == embeddings.check_all(embeddings.Server(url, ""))
    assert [*judges.SECTIONS] == judges.try_all(judges.Judge(url, samples=2, injections=2))
    printed = capsys.readouterr().out
    assert len(embeddings.CHECKS) + len(judges.SECTIONS) == printed.count("FAILED ") + printed.count("FAILED: ") - 1
