"""Asks each service whether it is well, in its own protocol."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from services.native.rundir import RunDir, Running

PATIENCE = 2.0
"""Seconds a service may take to answer."""

REPLY_BYTES = 512


@dataclass(frozen=True)
class Service:
    """One service of the stack.

    Args:
        name: as in supervisord.conf.
        probe: returns an empty string where the service is well, else what is wrong.
        remedy: what usually helps where it does not come up.
    """

    name: str
    probe: Callable[[RunDir, Running], str]
    remedy: str


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self._path)


def gateway(run: RunDir, running: Running) -> str:
    """The gateway answers /gateway/health itself."""
    return _get(HTTPConnection(running.host, running.ports["REWARD_PORT"], timeout=PATIENCE), "/gateway/health")


def rules(run: RunDir, running: Running) -> str:
    """The reward server answers /ready once it can score."""
    return _get(UnixConnection(run.rules_socket), "/ready")


def cache(run: RunDir, running: Running) -> str:
    """Redis answers a PING; one that wants a password is well too."""
    try:
        with socket.create_connection(("127.0.0.1", running.ports["CACHE_PORT"]), PATIENCE) as connection:
            connection.sendall(b"PING\r\n")
            reply = connection.recv(REPLY_BYTES)
    except OSError as error:
        return str(error)
    return "" if reply.startswith((b"+PONG", b"-NOAUTH")) else reply.decode(errors="replace").strip()


def _get(connection: HTTPConnection, path: str) -> str:
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(REPLY_BYTES).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return str(error)
    finally:
        connection.close()
    return "" if response.status == 200 else f"{path} answers {response.status}: {text}"


SERVICES = (
    Service("cache", cache, "see that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine"),
    Service("rules", rules, "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server"),
    Service("gateway", gateway, "see that REWARD_PORT is free and BIND_ADDRESS is an address of this machine"),
)
"""In the order in which they start."""
