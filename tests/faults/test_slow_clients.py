"""Clients that send or read slowly at the gateway, hundreds at a time: others are answered as ever."""

from __future__ import annotations

import json
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from tests.jobs.conftest import KEY, KEYS, Site, sample, site
from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer
from tests.support.dribble import Dribble
from tests.support.table import Table
from tests.support.waiting import eventually

CLIENTS = 300
ALL_CLIENTS = 600
"""Of all attacks together: more of each than the server has threads."""
UNREAD_CLIENTS = 64
"""Twice the threads."""
REQUESTS = 100
PAUSE = 0.01
"""Seconds between two of them."""
ENDED_SECONDS = 60
"""Within which a client that is too slow is ended; generous for a machine that is busy."""
SLOWLY = 64 * 1024
"""Bytes a second that are not too slow."""
LIMIT = 20
HUGE_BODIES = 8
"""Bodies of ten million bytes or more that an address may send at a time."""


def head(path: str, *headers: str, kind: str = "application/json", length: int = 1_000_000) -> bytes:
    """The head of a POST request whose body is to come."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}", f"Content-Length: {length}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


RIGHT = "X-API-Key: first-key-of-tests"
ATTACKS = {
    "jobs": head("/jobs", RIGHT, kind="application/x-ndjson"),
    "job": head("/jobs", RIGHT),
    "form": head("/jobs", RIGHT, kind="multipart/form-data; boundary=x") + b"--x\r\n",
    "score": head("/v1/score", RIGHT),
    "get_reward": head("/get_reward", RIGHT),
    "unknown path": head("/nothing", RIGHT),
    "wrong key": head("/jobs", "X-API-Key: wrong", kind="application/x-ndjson"),
    "no key": head("/v1/score"),
    "open path": head("/health"),
    "chunked": b"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: application/json\r\nX-API-Key: first-key-of-tests\r\n\r\nf4240\r\n",
    "head": b"POST /v1/score HTTP/1.1\r\nHost: ",
    "half a head": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nG",
    "second head": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nX: ",
    "nothing": b"",
    "left open": b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
}
UNREAD = {
    "life": b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 3000,
    "large replies": b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nX-API-Key: first-key-of-tests\r\n\r\n" * 100,
}
"""Requests whose replies are never read."""


@pytest.fixture(scope="module")
def guarded(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that takes jobs, with keys."""
    with site(tmp_path_factory.mktemp("guarded"), REWARD_SERVER_API_KEYS=KEYS) as one:
        yield one


@contextmanager
def before(server: RewardServer, folder: Path) -> Iterator[str]:
    """Run a gateway before a server; yield its address."""
    one = Gateway(folder, {"rules": [server.url.removeprefix("http://")]}, load(REWARD_SERVER_API_KEYS=KEYS))
    yield f"http://127.0.0.1:{one.ports['rules']}"
    one.stop()


@pytest.fixture(scope="module")
def gateway(needs_nginx: None, guarded: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway before the server with keys."""
    with before(guarded.server, tmp_path_factory.mktemp("gateway")) as address:
        yield address


@pytest.fixture(params=["alone", "gateway"])
def url(request: pytest.FixtureRequest, guarded: Site) -> str:
    """The address of the server, or of the gateway before it."""
    address: str = request.getfixturevalue("gateway") if request.param == "gateway" else guarded.server.url
    return address


def address_of(url: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def check_answers(url: str) -> None:
    """Check that it answers ordinary requests while clients send slowly, whom it does not end."""
    ask: list[Callable[[], requests.Response]] = [
        lambda: requests.get(f"{url}/health", timeout=60),
        lambda: requests.post(f"{url}/v1/score", json={"items": [sample(2)]}, headers=KEY, timeout=60),
    ]
    for number in range(REQUESTS):
        reply = ask[number % 2]()
        assert reply.status_code == 200, reply.text
        time.sleep(PAUSE)


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_each_attack(guarded: Site, gateway: str, table: Table) -> None:
    """Whatever they send slowly, a server of 32 threads answers others, and takes it for no fault of its own."""
    for attack, beginning in ATTACKS.items():
        with table.case(attack):
            with Dribble(address_of(gateway), [beginning], CLIENTS):
                check_answers(gateway)
            assert "Error handling" not in guarded.server.log.read_text()


@pytest.mark.nightly
@pytest.mark.parametrize("requests_sent", UNREAD)
def test_unread_replies(gateway: str, requests_sent: str) -> None:
    """Clients that never read their replies hold no thread that others need."""
    with Dribble(address_of(gateway), [UNREAD[requests_sent]], UNREAD_CLIENTS, reads=False):
        check_answers(gateway)


def test_all_attacks(guarded: Site, gateway: str) -> None:
    """All attacks at once keep no other client waiting."""
    with Dribble(address_of(gateway), [*ATTACKS.values()], ALL_CLIENTS):
        check_answers(gateway)
    assert "Error handling" not in guarded.server.log.read_text()


def send(url: str, *parts: bytes, pause: float = 0.0) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to what is sent in parts."""
    with socket.create_connection(address_of(url), ENDED_SECONDS) as client:
        for part in parts:
            client.sendall(part)
            time.sleep(pause)
        with client.makefile("rb") as reply:
            status = int(reply.readline().split()[1])
            length = 0
            while (line := reply.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            return status, json.loads(reply.read(length))


@pytest.mark.parametrize("path", ["/v1/score", "/jobs", "/get_reward"])
def test_keys_before_bodies(url: str, path: str) -> None:
    """A wrong key is refused before anything of the body has come."""
    status, _ = send(url, head(path, "X-API-Key: wrong"))
    assert status == 401


NO_HTTP = {"words": b"NO HTTP\r\n\r\n", "long line": b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n"}
"""What gunicorn's parser refuses."""


@pytest.mark.parametrize("first", NO_HTTP)
def test_what_is_no_http(guarded: Site, first: str) -> None:
    """What gunicorn refuses itself is answered too, however much follows it."""
    with socket.create_connection(address_of(guarded.server.url), ENDED_SECONDS) as client:
        client.sendall(NO_HTTP[first] + bytes(2_000_000))
        assert client.recv(65536).startswith(b"HTTP/1.1 4")
        while client.recv(65536):
            pass


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer first-key-of-tests"}, 200),
        ({"Authorization": f"Basic {b64encode(b'any:second-key-of-tests').decode()}"}, 200),
        ({"XRL-Authorization": "Bearer second-key-of-tests"}, 200),
        ({"X-API-Key": "second-key-of-tests"}, 200),
        ({"X-API-Key": "first-key-of-tests "}, 200),
        ({"X-API-Key": "first-ke"}, 401),
        ({"Authorization": "Bearer wrong", "X-API-Key": "first-key-of-tests"}, 401),
        ({}, 401),
    ],
)
def test_keys_at_the_gateway(gateway: str, headers: dict[str, str], status: int) -> None:
    """The gateway lets in by whatever the reward server lets in by, and by nothing else, asked once or again."""
    for _ in range(3):
        reply = requests.post(f"{gateway}/v1/score", json={"items": [sample(2)]}, headers=headers, timeout=60)
        assert reply.status_code == status, reply.text


def body(size: int) -> bytes:
    """A sample in so many bytes."""
    return json.dumps({"items": [sample(2)]}).encode().ljust(size)


def silent_body(url: str, path: str) -> None:
    """A connection on which no body comes is closed."""
    with socket.create_connection(address_of(url), ENDED_SECONDS) as client:
        client.sendall(head(path, RIGHT))
        while client.recv(65536):
            pass


def slow_head(url: str, attack: str) -> None:
    """A connection on which no head comes to its end is closed."""
    with socket.create_connection(address_of(url), ENDED_SECONDS) as client:
        client.sendall(ATTACKS[attack])
        while client.recv(65536):
            pass


def honest_client(url: str) -> None:
    """A body that comes at a modest rate, for longer than a slow one is waited for, is read to its end."""
    parts = [body(SLOWLY), *[b" " * SLOWLY] * 11]
    status, reply = send(url, head("/v1/score", RIGHT, length=12 * SLOWLY), *parts, pause=1.0)
    assert (status, reply["scores"][0]["value"]) == (200, 1.0)


def test_clients_that_are_waited_for(gateway: str, table: Table) -> None:
    """Clients that send nothing are ended; honest ones are answered."""
    clients = {
        **{f"silent body of {path}": partial(silent_body, gateway, path) for path in ("/v1/score", "/jobs")},
        **{f"slow head: {name}": partial(slow_head, gateway, name) for name in ("head", "second head", "nothing")},
        "honest client": partial(honest_client, gateway),
    }
    with ThreadPoolExecutor(len(clients)) as threads:
        ends = {name: threads.submit(client) for name, client in clients.items()}
        for name, end in ends.items():
            with table.case(name):
                end.result()


def test_huge_bodies_of_one_client(needs_nginx: None, guarded: Site, tmp_path: Path) -> None:
    """An address sends few huge bodies at a time, because the gateway keeps them in memory; small ones still pass."""
    huge = [head(path, RIGHT, length=10_000_000) for path in ("/v1/score", "/jobs")]
    huge.append(ATTACKS["chunked"])
    data = body(10_000_000)
    replies: list[requests.Response] = []

    with before(guarded.server, tmp_path) as url:

        def is_refused() -> bool:
            replies.append(requests.post(f"{url}/v1/score", data, headers=KEY, timeout=60))
            return replies[-1].status_code == 429

        with Dribble(address_of(url), huge, HUGE_BODIES):
            eventually(is_refused)
            check_answers(url)
    assert "8 over 10 MB" in replies[-1].json()["error"] and "Retry-After" in replies[-1].headers


@pytest.mark.parametrize("path", ["/v1/score", "/jobs"])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_a_large_body(url: str, path: str, chunked: bool) -> None:
    """A large body that is sent at once is read, whether it says its length or not."""
    data = body(30_000_000)
    sent: Any = iter([data]) if chunked else data
    reply = requests.post(url + path, sent, headers={**KEY, "Content-Type": "application/json"}, timeout=60)
    assert reply.status_code in (200, 202), reply.text


class From(HTTPAdapter):
    """Requests from another address of this machine."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        super().init_poolmanager(*arguments, **named, source_address=("127.0.0.2", 0))


def test_requests_of_one_client(needs_nginx: None, guarded: Site, tmp_path: Path) -> None:
    """The gateway limits one address's requests in flight and names the setting; each address has its own limit."""
    behind = {"rules": [guarded.server.url.removeprefix("http://")]}
    one = Gateway(tmp_path, behind, load(GATEWAY_CLIENT_REQUESTS=LIMIT))
    url = f"http://127.0.0.1:{one.ports['rules']}"
    ask = partial(requests.get, f"{url}/v1/reward_types", headers=KEY, timeout=60)
    replies: list[requests.Response] = []

    def is_refused() -> bool:
        replies.append(ask())
        return replies[-1].status_code == 429

    other = requests.Session()
    other.mount("http://", From())
    try:
        with Dribble(address_of(url), [ATTACKS["score"]], LIMIT):
            eventually(is_refused)
            refused = replies[-1]
            taken = other.get(f"{url}/v1/reward_types", headers=KEY, timeout=60)
    finally:
        one.stop()
    assert (refused.status_code, taken.status_code) == (429, 200)
    assert "Retry-After" in refused.headers and "GATEWAY_CLIENT_REQUESTS (20)" in refused.json()["error"]
