"""Large and broken bodies: the client can always read why its request was refused."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from itertools import product

import pytest

from tests.rules.conftest import RewardServer
from tests.support.table import Table

pytestmark = pytest.mark.usefixtures("needs_process")

LARGE = 30_000_000
LIMIT = 100_000
Start = Callable[..., RewardServer]
HEAD = "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nConnection: {connection}\r\n{more}\r\n"


def connect(server: RewardServer) -> socket.socket:
    """A connection to a server."""
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), 30)


def read_reply(client: socket.socket) -> tuple[int, dict[str, object]]:
    """Status and body of a reply."""
    data = b""
    while b"\r\n\r\n" not in data or not data.endswith(b"}\n"):
        part = client.recv(65536)
        if not part:
            break
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.fixture(scope="module", params=["gunicorn", "single process"])
def limited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RewardServer:
    """A server of each kind that takes 100,000 bytes, and one key."""
    arguments = ("--workers", "1") if request.param == "gunicorn" else ()
    folder = tmp_path_factory.mktemp("limited")
    server = RewardServer(folder, *arguments, MAX_BODY_BYTES=LIMIT, REWARD_SERVER_API_KEYS="a-key-of-the-tests")
    request.addfinalizer(server.process.wait)
    request.addfinalizer(server.process.terminate)
    server.wait_until_ready()
    return server


REFUSED = [
    ("/v1/score", "application/json", "a-key-of-the-tests", 413),
    ("/v1/score", "application/json", "wrong", 401),
    ("/v1/score", "text/plain", "a-key-of-the-tests", 415),
    ("/nothing", "application/json", "a-key-of-the-tests", 404),
    ("/health", "application/json", "a-key-of-the-tests", 405),
]
"""Path, content type and key of large requests, and the status of the reply."""


@pytest.mark.nightly
def test_sent_to_its_end(limited: RewardServer, table: Table) -> None:
    """A client that reads only once it has sent all reads the refusal, whatever it was refused for."""
    for (path, kind, key, status), connection, chunked in product(REFUSED, ("close", "keep-alive"), (False, True)):
        with table.case(f"{status}, {connection}, {'chunked' if chunked else 'length'}"), connect(limited) as client:
            length = "Transfer-Encoding: chunked\r\n" if chunked else f"Content-Length: {LARGE}\r\n"
            more = f"X-API-Key: {key}\r\n{length}"
            client.sendall(HEAD.format(path=path, kind=kind, connection=connection, more=more).encode())
            send_large_body(client, chunked)
            time.sleep(0.2)  # a reset, were there one, would by now have thrown away the reply
            code, reply = read_reply(client)

            assert (status, {"error", "field"}) == (code, set(reply))


def send_large_body(client: socket.socket, chunked: bool) -> None:
    """Send a body of LARGE spaces to its end."""
    part = b" " * 1_000_000
    for _ in range(LARGE // len(part)):
        client.sendall(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
    if chunked:
        client.sendall(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n", b"5\r\nab", b"-1\r\nx\r\n", b"5;x\r\nabcdefgh\r\n0\r\n\r\n"],
    ids=["size", "cut", "minus", "end"],
)
def test_broken_chunks(limited: RewardServer, body: bytes) -> None:
    """A body in broken chunks is 400, not 500."""
    head = HEAD.format(
        path="/v1/score",
        kind="application/json",
        connection="close",
        more="X-API-Key: a-key-of-the-tests\r\nTransfer-Encoding: chunked\r\n",
    )
    with connect(limited) as client:
        client.sendall(head.encode() + body)
        client.shutdown(socket.SHUT_WR)
        code, reply = read_reply(client)

    assert (400, {"error", "field"}) == (code, set(reply))


def test_cut_body(limited: RewardServer) -> None:
    """A body that is shorter than its declared length is 400, and the server keeps serving."""
    head = HEAD.format(
        path="/v1/score",
        kind="application/json",
        connection="close",
        more="X-API-Key: a-key-of-the-tests\r\nContent-Length: 500\r\n",
    )
    with connect(limited) as client:
        client.sendall(head.encode() + b'{"items": ')
        client.shutdown(socket.SHUT_WR)
        code, reply = read_reply(client)

    assert (400, {"error", "field"}) == (code, set(reply))
    assert limited.get("/health").status_code == 200
