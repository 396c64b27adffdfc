"""Discover model servers on other nodes. Each writes its endpoint and heartbeat to a file on shared storage.

A file is trusted only if the user owns it and no other user can access it. Of the URL in a file, only the host (which
is resolved) and the port are used. The clocks of nodes differ, so a server counts as alive while its heartbeat keeps
changing, whatever time the heartbeat has.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ALIVE_SECONDS = 30.0
"""Seconds without a new heartbeat after which a server counts as gone."""
MAX_FILE_BYTES = 65_536
"""Maximum size of an endpoints file in bytes."""
SUFFIX = ".json"
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class InvalidFile(ValueError):
    """Raised for a file that is not a valid endpoints file. The message has the reason."""


@dataclass(frozen=True)
class Server:
    """A model server on another node.

    Args:
        url: URL in the server's file.
        written: time of the last heartbeat, by the clock of the server's node.
        address: IP address and port in nginx syntax.
        changed_at: time when the heartbeat last changed, by this process's clock. Until the first change, it is minus
            infinity, because the file may be left over from a dead server; see `Replicas.listed` for an exception.
    """

    url: str
    written: float
    address: str
    changed_at: float = -math.inf


@dataclass
class Replicas:
    """Watches one folder of endpoints files.

    Args:
        folder: folder with a file for each server.
        variable: variable with the server's URL in these files.
        log: called with a message, once for each problem of a file.
        clock: returns the time in seconds.
        listed: addresses in the gateway's current list; they count as alive for the first `ALIVE_SECONDS`.
    """

    folder: Path
    variable: str
    log: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    listed: frozenset[str] = frozenset()
    _seen: dict[str, Server] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)

    def alive(self) -> list[str]:
        """Return the addresses of the servers that are alive, sorted."""
        now = self.clock()
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(SUFFIX))
        except OSError:
            names = sorted(self._seen)  # the storage does not answer: known servers count as alive for ALIVE_SECONDS
        self._seen = {name: server for name in names if (server := self._read_server(name, now))}
        return sorted({server.address for server in self._seen.values() if now - server.changed_at < ALIVE_SECONDS})

    def _read_server(self, name: str, now: float) -> Server | None:
        last = self._seen.get(name)
        try:
            url, written = read(self.folder / name, self.variable)
            known = last and last.url == url
            address = last.address if last and known else resolve(url)
            initial = now if address in self.listed else -math.inf
            changed_at = last.changed_at if last and known and last.written == written else now if last else initial
            return Server(url, written, address, changed_at)
        except FileNotFoundError:
            return None
        except OSError:
            return last
        except InvalidFile as error:
            if (text := f"{self.folder / name}: {error}") not in self._logged:
                self._logged.add(text)
                self.log(text)
            return None


def read(path: Path, variable: str) -> tuple[str, float]:
    """Return the URL of a server and its heartbeat.

    Args:
        path: path of the server's file.
        variable: variable with the URL in the file.

    Raises:
        InvalidFile: the file is not private to the user, or is malformed.
        OSError: the file cannot be read.
    """
    # O_NONBLOCK: do not wait for a writer if the file is a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise InvalidFile(f"it must be this user's own file and of mode 600 (chmod 600 {path})")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InvalidFile(f"it is longer than {MAX_FILE_BYTES} bytes")
    try:
        found: dict[str, Any] = json.loads(content)
        url, written = found["servers"][variable], found["written"]
        if isinstance(url, str) and not isinstance(written, bool) and math.isfinite(written):
            return url, float(written)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        pass
    raise InvalidFile(f"it is no file of endpoints that names {variable}")


def resolve(url: str) -> str:
    """Return the IP address and port of a URL `http://HOST:PORT` in nginx syntax.

    Raises:
        InvalidFile: the URL has another form, or its host is unknown.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    plain = url.lower() in (f"http://{host}:{port}", f"http://[{host}]:{port}")
    if not plain or not port or not (HOST.fullmatch(host) or ":" in host):
        raise InvalidFile("its server is not written as http://HOST:PORT")
    try:
        [family, _, _, _, (address, *_)], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidFile(f"the host {host} is not known here") from None
    return f"[{address}]:{port}" if family == socket.AF_INET6 else f"{address}:{port}"
