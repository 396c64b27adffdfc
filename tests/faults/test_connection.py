"""How long a connection is waited for, and with what leave."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from threading import Thread

import pytest

from rewardstack.errors import OverloadError
from rewardstack_rules.http import connection as http_connection
from rewardstack_rules.http.connection import FAST_RATE, ClientSlots, PacedSocket
from rewardstack_rules.http.gunicorn_worker import Connection
from tests.support.table import Table

GRACE = 3600
"""Seconds that a client has earned by what it has sent."""


@pytest.fixture
def slots() -> ClientSlots:
    """All taken."""
    one = ClientSlots(2)
    assert one.slow.acquire(blocking=False)
    return one


@pytest.fixture
def pair(slots: ClientSlots) -> Iterator[tuple[PacedSocket, socket.socket]]:
    """A connection, and its client's end."""
    with connected(slots) as ends:
        yield ends


@contextmanager
def connected(slots: ClientSlots) -> Iterator[tuple[PacedSocket, socket.socket]]:
    """Connect, and yield both ends, the server's first."""
    accepted, client = socket.socketpair()
    with PacedSocket(accepted, slots) as one, client:
        yield one, client


@pytest.mark.timeout(60)
def test_a_silence_after_much(pair: tuple[PacedSocket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sent much and then falls silent needs a place soon, not as late as what it sent has earned."""
    monkeypatch.setattr(http_connection, "SILENCE", 0.1)  # expires: the client sends nothing
    connection, _ = pair
    connection.start_request(GRACE * FAST_RATE)
    with pytest.raises(OverloadError):
        connection.recv(1)


def test_an_unread_reply(pair: tuple[PacedSocket, socket.socket]) -> None:
    """A client that does not read needs a place too, and is cut off where none is free."""
    connection, _ = pair
    with pytest.raises(BrokenPipeError):
        connection.sendall(bytes(10 * FAST_RATE))


def test_a_reply_that_is_read(pair: tuple[PacedSocket, socket.socket], slots: ClientSlots) -> None:
    """A reply larger than what the kernel has room for arrives whole."""
    slots.slow.release()
    connection, client = pair
    data = bytes(range(256)) * 100_000
    sender = Thread(target=connection.sendall, args=[data])
    sender.start()
    with client.makefile("rb") as reply:
        assert reply.read(len(data)) == data
    sender.join()


def test_an_impatient_connection(pair: tuple[PacedSocket, socket.socket], slots: ClientSlots) -> None:
    """One that is not to be waited for is not, though a place is free."""
    slots.slow.release()
    connection, _ = pair
    connection.start_request(GRACE * FAST_RATE, may_wait=False)
    with pytest.raises(OverloadError):
        connection.recv(1)


READY = {
    "nothing": (b"", False),
    "half a head": (b"POST / HTTP/1.1\r\nHost: x\r\n", False),
    "no body": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
    "a body to come": (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n", False),
    "half a body": (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n1", False),
    "a body": (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n12", True),
    "a body that is waited for": (b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", True),
    "a chunk": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12", False),
    "all chunks": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n12\r\n0\r\n\r\n", True),
}
"""What a client sends, and whether a thread would then have nothing to wait for."""


def test_what_needs_a_thread(slots: ClientSlots, table: Table) -> None:
    """A request gets a thread once that need not wait for it, also if it came with an earlier request."""
    for (name, (sent, ready)), pipelined in product(READY.items(), (False, True)):
        with table.case(f"{name}, {'pipelined' if pipelined else 'sent'}"), connected(slots) as (accepted, client):
            connection = Connection(None, accepted, None, None)
            if pipelined:
                connection.add(sent)
            else:
                client.sendall(sent)
            assert connection.is_ready() is ready
