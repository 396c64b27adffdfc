"""The gateway: what it lets through, when it tries another server, and what it says itself."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.native.nginx import Gateway, load
from tests.support.servers import FaultServer, fault_server

ITEM = {"data_source": "gsm8k", "solution_str": "four", "ground_truth": "4", "extra_info": None}
MAX_BODY_BYTES = 4096

pytestmark = pytest.mark.usefixtures("needs_nginx")


def score(gateway: Gateway) -> int:
    """Status of the answer to a sample."""
    return gateway.ask("/v1/score", json.dumps({"items": [ITEM]}).encode())[0]


class Scene:
    """A gateway and the servers behind it."""

    def __init__(self, gateway: Gateway, servers: list[FaultServer]) -> None:
        self.gateway, self.servers = gateway, servers

    def requests(self) -> list[int]:
        """How many scoring requests each server saw."""
        return [server.stats()["requests"] for server in self.servers]


@contextmanager
def started(folder: Path, **values: object) -> Iterator[Scene]:
    """Run a scene with settings of the test's own."""
    with ExitStack() as stack:
        servers = [stack.enter_context(fault_server()) for _ in range(3)]
        behind = {"rules": [f"127.0.0.1:{server.port}" for server in servers]}
        gateway = Gateway(folder, behind, load(MAX_BODY_BYTES=MAX_BODY_BYTES, **values))
        stack.callback(gateway.stop)
        yield Scene(gateway, servers)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Started before the test, gone after it."""
    with started(tmp_path) as one:
        yield one


def test_one_more_try(scene: Scene) -> None:
    """A server that breaks the connection costs a second try on another one, not the sample."""
    scene.servers[0].set(mode="drop")
    assert [score(scene.gateway) for _ in range(6)] == [200] * 6
    assert scene.requests()[0] >= 1


def test_one_more_try_after_a_timeout(tmp_path: Path) -> None:
    """So does one that hangs."""
    with started(tmp_path, GATEWAY_TIMEOUT=5) as scene, ThreadPoolExecutor(6) as pool:
        scene.servers[0].set(mode="hang")
        assert [*pool.map(lambda _: score(scene.gateway), range(6))] == [200] * 6
        assert scene.requests()[0] >= 1


def test_dead_server(scene: Scene) -> None:
    """So does one that is gone."""
    scene.servers[0].kill()
    assert [score(scene.gateway) for _ in range(6)] == [200] * 6


def test_all_dead(scene: Scene) -> None:
    """Where all are gone a request is neither let in nor refused for its key: the client is told to try again."""
    for server in scene.servers:
        server.kill()
    status, body = scene.gateway.ask("/v1/score", json.dumps({"items": [ITEM]}).encode())
    assert (status, json.loads(body)) == (502, {"error": "the reward server does not answer the gateway; try again"})


@pytest.mark.parametrize("status", ["429", "503", "500"])
def test_a_refusal_is_passed_on(scene: Scene, status: str) -> None:
    """A request that a server refuses is tried on another; where all refuse, the client hears it, and all stay in."""
    for server in scene.servers:
        server.set(mode=status)
    assert [score(scene.gateway) for _ in range(12)] == [int(status)] * 12
    assert sum(scene.requests()) == 24
    for server in scene.servers[1:]:
        server.set(mode="ok")
    assert [score(scene.gateway) for _ in range(12)] == [200] * 12


def test_two_tries_at_most(scene: Scene) -> None:
    """Where all break, the client is told after two tries, with words and a Retry-After."""
    for server in scene.servers:
        server.set(mode="drop")
    status, body = scene.gateway.ask("/v1/score", json.dumps({"items": [ITEM]}).encode())
    assert (status, json.loads(body)) == (502, {"error": "the reward server does not answer the gateway; try again"})
    assert sum(scene.requests()) == 2


@pytest.mark.parametrize("path", ["/v1/score/", "/v1/scores", "/_stats", "/v1/score%2f", "/admin", "//_stats"])
def test_unlisted_path(scene: Scene, path: str) -> None:
    """A path that is not listed never reaches a server."""
    assert scene.gateway.ask(path)[0] == 404


@pytest.mark.parametrize(
    ("request_line", "status", "said"),
    [
        (
            b"GET /nope?key=secret HTTP/1.1",
            404,
            "no such path /nope at the gateway; here it leads to the reward",
        ),
        (b"GET /%22%0a HTTP/1.1", 404, "no such path at the gateway"),
        (b"GET /%zz HTTP/1.1", 400, "cannot read this request"),
        (b"garbage", 400, "cannot read this request"),
        (b"GET / HTTP/9.9", 505, "cannot read this request"),
        (b"TRACE /v1/score HTTP/1.1", 405, "takes no request of this method"),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1", 414, "longer than 8 kB"),
        (b"GET /health HTTP/1.1\r\nA: " + b"a" * 9000, 400, "longer than 8 kB"),
        (b"POST /v1/score HTTP/1.1\r\nTransfer-Encoding: what", 501, "cannot read this request"),
    ],
    ids=lambda value: value[:20] if isinstance(value, bytes) else None,
)
def test_refusals_are_sentences(scene: Scene, request_line: bytes, status: int, said: str) -> None:
    """What the gateway itself refuses it says in the servers' shape, a JSON object with `error`, and never in HTML."""
    with socket.create_connection(("127.0.0.1", scene.gateway.ports["rules"]), 60) as connection:
        connection.sendall(request_line + b"\r\nHost: gateway\r\nConnection: close\r\n\r\n")
        head, _, body = b"".join(iter(lambda: connection.recv(2**16), b"")).partition(b"\r\n\r\n")
    assert (int(head.split()[1]), said in json.loads(body)["error"]) == (status, True), body
    assert b"Content-Type: application/json" in head and b"secret" not in body
    assert sum(scene.requests()) == 0


@pytest.mark.parametrize("path", ["/v1/score", "/get_reward", "/v1/reward_types", "/health", "/ready", "/metrics"])
def test_listed_path(scene: Scene, path: str) -> None:
    """A listed one is asked of a server, and logged unless machines ask it all the time."""
    assert "no such path" not in scene.gateway.ask(path)[1]
    said = scene.gateway.stop()
    addresses = {f"upstream=127.0.0.1:{server.port}" for server in scene.servers}
    logged = [line for line in said.splitlines() if f"GET {path} " in line]
    assert bool(logged) == (path not in ("/health", "/ready", "/metrics"))
    assert not logged or addresses & set(logged[0].replace(",", "").split())


@pytest.mark.parametrize(
    ("path", "is_served"),
    [
        ("/", True),
        ("/v1/status", True),
        ("/v1/explain", True),
        (f"/jobs/{'0' * 32}/results?start=0", True),
        ("/v1/score", False),
        ("/get_reward", False),
        ("/jobs", False),
        ("/metrics", False),
    ],
)
def test_page_port(scene: Scene, path: str, is_served: bool) -> None:
    """The port of the status page serves what the page loads, and nothing else."""
    answer = scene.gateway.ask(path, service="page")[1]
    assert ("it leads to the status page" in answer) != is_served


def test_own_health(scene: Scene) -> None:
    """/gateway/health is the gateway's own: it is healthy while the servers are gone."""
    for server in scene.servers:
        server.kill()
    assert scene.gateway.ask("/gateway/health") == (200, '{"status": "ok"}\n')


def test_large_body(scene: Scene) -> None:
    """A body over the limit is refused by a JSON error that names the limit; one at the limit passes."""
    status, body = scene.gateway.ask("/v1/score", b" " * (MAX_BODY_BYTES + 1))
    assert (status, "MAX_BODY_BYTES (4096)" in json.loads(body)["error"]) == (413, True)
    item = json.dumps({"items": [ITEM]}).encode()
    assert scene.gateway.ask("/v1/score", item + b" " * (MAX_BODY_BYTES - len(item)))[0] == 200
    assert sum(scene.requests()) == 1


def test_log_has_no_query(scene: Scene) -> None:
    """The access log holds path, server and timings, and neither query nor body."""
    scene.gateway.ask("/v1/score?key=secret-query", b"secret-body")
    logged = scene.gateway.stop()
    assert "POST /v1/score " in logged and " answer=" in logged
    assert "secret" not in logged
