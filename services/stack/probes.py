"""Probe the health of services over HTTP and the Redis protocol.

Each probe returns a description of the problem, or an empty string if the service is healthy.
"""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 2.0
"""Default timeout of a probe, in seconds."""
REPLY_BYTES = 512


class RedisError(Exception):
    """Raised if a Redis server does not answer, or rejects a command."""


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket.

    Args:
        path: path of the socket.
        timeout: timeout in seconds; None for no timeout.
    """

    def __init__(self, path: Path, timeout: float | None = TIMEOUT_SECONDS) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = _connect(self._path, self.timeout)


def http(server: str | Path, path: str, timeout: float = TIMEOUT_SECONDS, tls: bool = False) -> str:
    """Check that an HTTP server answers a path with 200.

    Args:
        server: host and port, where an IPv6 host is in brackets; or the path of a Unix socket.
        path: path to request.
        timeout: timeout in seconds.
        tls: whether to use TLS. The certificate is not verified, because it may not contain this address.
    """
    if isinstance(server, Path):
        connection: HTTPConnection = UnixConnection(server, timeout)
    elif tls:
        unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        connection = HTTPSConnection(server, timeout=timeout, context=unverified)
    else:
        connection = HTTPConnection(server, timeout=timeout)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(REPLY_BYTES).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()
    return "" if response.status == 200 else f"{path} answers {response.status}: {text}"


def redis(url: str, timeout: float = TIMEOUT_SECONDS) -> str:
    """Send PING to a Redis server over a Unix socket. Parameters as in `redis_reply`.

    If the server has a password, the URL must contain it; without the password, a healthy server answers with an error.
    """
    try:
        reply = redis_reply(url, ["PING"], timeout)
    except RedisError as error:
        return str(error)
    return "" if reply == b"PONG" else repr(reply)


def redis_reply(url: str, command: list[str], timeout: float = TIMEOUT_SECONDS) -> Any:
    """Send a command to a Redis server, and return the reply: bytes, a number, None, or a list of these.

    Args:
        url: `unix://[[USER]:PASSWORD@]/PATH`.
        command: command with its arguments.
        timeout: timeout in seconds.

    Raises:
        RedisError: Redis does not answer, or returns an error.
    """
    parts = urlsplit(url)
    login = ["AUTH", *filter(None, [parts.username, parts.password])] if parts.password else []
    commands = [words for words in (login, command) if words]
    try:
        with _connect(parts.path, timeout) as connection, connection.makefile("rb") as stream:
            connection.sendall(b"".join(map(_encode, commands)))
            return [_reply(stream) for _ in commands][-1]
    except (OSError, ValueError) as error:
        raise RedisError(str(error) or type(error).__name__) from error


def _encode(command: list[str]) -> bytes:
    parts = [part.encode() for part in command]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _reply(stream: BinaryIO) -> Any:
    """Read one reply.

    Raises:
        RedisError: the reply is an error, or is missing.
    """
    line = stream.readline().rstrip()
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return stream.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
    if kind == b"*":
        return [_reply(stream) for _ in range(int(rest))]
    raise RedisError(rest.decode(errors="replace") or "the connection was closed")


def _connect(path: str, timeout: float | None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection
