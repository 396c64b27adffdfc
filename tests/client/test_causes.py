"""Why an answer did not come: every reason says what was last known of the server, and what lasts is in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable

import pytest

from rewardstack import Request, score
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import OverloadError, ServiceError, UnreachableError
from rewardstack.transport import timing
from rewardstack.transport.message import HEALTH
from rewardstack.transport.recording import Recording, RecordingService
from rewardstack.transport.servers import Call, Servers
from tests.support.clock import LIMIT, Clock, known
from tests.support.servers import FaultServer, free_port

SAID = "retrying"
WAITS = r"retrying for up to \d+ s"


def reasons(count: int = 3) -> set[str]:
    """The different reasons of samples that all fail at their timeout."""
    scores = score([Request("math", f"caused {at}", "1", {"timeout": LIMIT}) for at in range(count)])
    assert {"failed"} == {one.status for one in scores}
    return {one.reason for one in scores}


SILENT = "{url} (accepted the connection and )?has sent nothing for"
CAUSES: dict[str, tuple[Callable[[FaultServer], object], list[str]]] = {
    "dead": (FaultServer.kill, ["{url}/", "connection refused", r"\('127.0.0.1', {port}\)"]),
    "stopped": (FaultServer.freeze, [SILENT + r" \d+\.\d s \(1 request of this process in flight\)"]),
    "stopped for long": (FaultServer.freeze, ["{url}: accepts connections but does not answer"]),
    "refuses": (
        lambda server: server.set(mode="503"),
        [r"{url}/v1/score returned 503: mode 503 \(\d+ times\)"],
    ),
    "busy": (
        lambda server: server.set(delay=3600),
        ["{url} is up and is working on 1 request of this process, the oldest"],
    ),
}
NEVER = 3600.0
TIMES = {
    "stopped": {"PROBE_AFTER": NEVER},
    "stopped for long": {"HEALTH_TIMEOUT": 0.2, "LOG_AFTER": NEVER},  # expires: the server is stopped
    "refuses": {"PROBE_AFTER": NEVER},
}
"""When more is known about a server: soon, or never."""


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("cause", CAUSES)
def test_every_reason_has_its_cause(
    server: FaultServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    """The reason of a sample that waited in vain names the server: gone, silent, refusing or busy."""
    assert "ok" == score([Request("math", "warm")])[0].status
    for name, seconds in ({"PROBE_AFTER": 0.1} | TIMES.get(cause, {})).items():
        monkeypatch.setattr(timing, name, seconds)
    befall, says = CAUSES[cause]
    befall(server)
    patterns = [words.format(url=server.url, port=server.port) for words in says]
    for reason in clock.expire(reasons, lambda: all(re.search(pattern, known()) for pattern in patterns)):
        assert [] == [pattern for pattern in patterns if not re.search(pattern, reason)], reason


def test_name_that_is_not_known(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose name does not resolve is called that."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("REWARD_SERVER_URL", "http://nowhere.invalid:6000")
    (reason,) = clock.expire(reasons, lambda: "host not found" in known())
    assert "http://nowhere.invalid:6000/v1/reward_types: host not found: " in reason


@pytest.mark.usefixtures("needs_process")
def test_https_to_a_server_without_tls(server: FaultServer, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A URL with https for a server that speaks plain HTTP is named as such."""
    monkeypatch.setenv("REWARD_SERVER_URL", server.url.replace("http:", "https:"))
    (reason,) = clock.expire(reasons, lambda: "TLS" in known())
    assert "the server does not use TLS; write http:// in place of https://" in reason


def test_samples_behind_others_have_the_cause(
    server: FaultServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What still waits for its turn at the deadline is told of the server as well."""
    monkeypatch.setenv("REWARDSTACK_MAX_CONNECTIONS", "1")
    monkeypatch.setattr(timing, "PROBE_AFTER", NEVER)
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    found = clock.expire(lambda: reasons(200), lambda: "3 requests are queued" in known())
    silent = SILENT.format(url=server.url)
    assert {True} == {bool(re.search(silent, reason)) for reason in found}


def test_the_calls_own_limit_is_named(server: FaultServer, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the call's limit ends it, the reason says so many seconds, not the service's timeout."""
    monkeypatch.setattr(timing, "PROBE_AFTER", NEVER)
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    (one,) = clock.expire(
        lambda: score([Request("math", "limited", None, {"timeout": 2 * LIMIT})], timeout=LIMIT),
        lambda: "in flight" in known(),
    )
    found = re.match(r"no answer within ([0-9.]+) s; ", one.reason)
    assert found and 0 < float(found[1]) <= LIMIT and server.url in one.reason


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lasts is said after a tenth of a second, and no server is probed."""
    monkeypatch.setattr(timing, "LOG_AFTER", 0.1)
    monkeypatch.setattr(timing, "PROBE_AFTER", NEVER)


@pytest.mark.parametrize("mode", ["gone", "503"])
def test_said_once_while_it_lasts(
    soon: None, server: FaultServer, clock: Clock, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """While samples wait the log says once which server it is and what is wrong with it, before the deadline."""
    assert "ok" == score([Request("math", "warm")])[0].status
    server.kill() if mode == "gone" else server.set(mode=mode)
    with caplog.at_level(logging.WARNING, "rewardstack"):
        clock.expire(lambda: reasons(300), lambda: SAID in caplog.text)
    (line,) = [message for message in caplog.messages if SAID in message]
    (end,) = [message for message in caplog.messages if "300 of 300 samples failed" in message]
    assert caplog.messages.index(line) < caplog.messages.index(end)
    assert line.startswith(f"{server.url}/v1/score") and re.search(WAITS, line)


def test_silence_is_said(
    server: FaultServer, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that accepts connections and sends nothing is in the log while the samples still wait."""
    monkeypatch.setattr(timing, "PROBE_AFTER", 0.1)
    monkeypatch.setattr(timing, "HEALTH_TIMEOUT", 0.1)  # expires: the server is stopped
    monkeypatch.setattr(timing, "LOG_AFTER", 0.1)
    assert "ok" == score([Request("math", "warm")])[0].status
    server.freeze()
    caplog.clear()  # on a busy machine that answer, too, may have been slow enough to be logged
    with caplog.at_level(logging.WARNING, "rewardstack"):
        clock.expire(reasons, lambda: SAID in caplog.text)
    line, _ = caplog.messages
    hangs = "accepts connections but does not answer, not even GET /health"
    assert re.fullmatch(rf"{server.url}: {hangs}; unavailable for \d+ s, {WAITS}", line), line


async def test_incidents(soon: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is over soon is not said, nor what nobody waits for; each failure that lasts is said once."""
    awaited = ["for up to 5 s"]
    service = RecordingService(Recording(), None)
    servers = Servers(["http://a"], "", lambda _: service, 1, 0)
    monkeypatch.setattr(servers, "_describe_wait", lambda: awaited[0])
    server, call = servers._servers[0], Call(HEALTH, SharedDeadline(Deadline(60)), None)  # type: ignore[arg-type]

    def fail(error: ServiceError) -> None:
        servers._learn(server, call, error, 0.0)

    refused = OverloadError("refuses", status=503), OverloadError("refuses still", status=503)
    fail(refused[0])
    server.succeed()
    await asyncio.sleep(0.15)
    awaited[0] = ""
    fail(UnreachableError("nobody asks"))
    await asyncio.sleep(0.15)
    assert "" == caplog.text
    server.succeed()
    awaited[0] = "for up to 5 s"
    for error in refused * 2:
        fail(error)
        await asyncio.sleep(0.06)
    assert "refuses still (4 times)" == server.cause()
    assert 1 == caplog.text.count(SAID)
    server.succeed()
    assert not server.cause()
    servers.close()


def test_scripts_try_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts that try a server go through all checks where nobody is there, and report each."""
    from tests import test_llm_judge_remote_server_integration as judges
    from tests import test_server_connectivity as embeddings

    for script in (embeddings, judges):
        monkeypatch.setattr(script, "BRIEF", 0.2)  # expires: the port is closed
    url = f"http://127.0.0.1:{free_port()}"
    assert len(embeddings.CHECKS) == embeddings.check_all(embeddings.Server(url, ""))
    assert [*judges.SECTIONS] == judges.try_all(judges.Judge(url, samples=2, injections=2))
    printed = capsys.readouterr().out
    assert len(embeddings.CHECKS) + len(judges.SECTIONS) == printed.count("FAILED ") + printed.count("FAILED: ") - 1
