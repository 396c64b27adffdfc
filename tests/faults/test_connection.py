"""The connection of a request: how long it may be silent, and whether its client is still there."""

from __future__ import annotations

import socket
from collections.abc import Callable

from flask import Flask

from rewardstack_rules.http import connection
from tests.support.table import Table

CLIENTS: dict[str, tuple[Callable[[socket.socket], object], bool]] = {
    "waits": (lambda client: None, True),
    "sends its next request": (lambda client: client.sendall(b"GET / HTTP/1.1"), True),
    "has closed": (lambda client: client.close(), False),
    "sends no more": (lambda client: client.shutdown(socket.SHUT_WR), False),
}
"""What a client does while its request is answered, and whether it is still there."""


def test_clients_that_wait(table: Table) -> None:
    """A client counts as gone once it closes its connection; silence on it ends a read."""
    app = Flask(__name__)
    connection.install(app)
    checks: list[Callable[[], bool]] = []

    @app.get("/")
    def ask() -> str:
        checks.append(connection.client_is_there())
        return ""

    for name, (act, is_there) in CLIENTS.items():
        ours, theirs = socket.socketpair()
        with table.case(name), ours, theirs:
            app.test_client().get("/", environ_overrides={"gunicorn.socket": ours})
            assert ours.gettimeout() == connection.SILENCE_SECONDS
            assert checks[-1]()
            act(theirs)
            assert [checks[-1](), checks[-1]()] == [is_there, is_there]
    with table.case("without a connection"):
        app.test_client().get("/")
        assert checks[-1]()
