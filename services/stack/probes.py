"""Asks a server whether it is well, in its own protocol: an empty string where it is, else what is wrong."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

PATIENCE = 2.0
"""Seconds that a server may take to answer."""
REPLY_BYTES = 512


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        super().__init__("localhost", timeout=patience)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = _connect(self._path, self.timeout)


def http(address: str, path: str, patience: float = PATIENCE) -> str:
    """A server answers a path with 200.

    Args:
        address: host and port, an IPv6 host in brackets.
        path: to ask for.
        patience: seconds that it may take.
    """
    return _get(HTTPConnection(address, timeout=patience), path)


def https(address: str, path: str, patience: float = PATIENCE) -> str:
    """So over TLS; whose certificate it shows is not asked, for it may bear another name than this address."""
    unasked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unasked.check_hostname, unasked.verify_mode = False, ssl.CERT_NONE
    return _get(HTTPSConnection(address, timeout=patience, context=unasked), path)


def http_socket(listens: Path, path: str, patience: float = PATIENCE) -> str:
    """A server that listens on a Unix socket answers a path with 200."""
    return _get(UnixConnection(listens, patience), path)


def redis(listens: Path, patience: float = PATIENCE) -> str:
    """A Redis that listens on a Unix socket answers a PING; one that wants a password is well too."""
    try:
        with _connect(str(listens), patience) as connection:
            connection.sendall(b"PING\r\n")
            reply = connection.recv(REPLY_BYTES)
    except OSError as error:
        return str(error)
    return "" if reply.startswith((b"+PONG", b"-NOAUTH")) else reply.decode(errors="replace").strip()


def _connect(path: str, patience: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(patience)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def _get(connection: HTTPConnection, path: str) -> str:
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(REPLY_BYTES).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return "" if response.status == 200 else f"{path} answers {response.status}: {text}"
