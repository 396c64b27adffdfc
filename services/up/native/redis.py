"""Configure the Redis servers of cache and queue. They listen on Unix sockets and optionally on a port."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from services.stack.rundir import CHART_FILES, RunDir
from services.stack.secrets import Secrets
from services.stack.settings import Settings

OPTIONS = CHART_FILES / "redis"
SERVER = "server"
"""Redis user with all rights at the cache, for the stack's own services."""


@dataclass(frozen=True)
class Redis:
    """A Redis server.

    Args:
        service: `cache` or `queue`.
        socket: Unix socket that the server listens on.
        configuration: text of the configuration file, which includes the file that all deployments share.
        login: user and password in URL syntax; empty if the server has no port.
        published: URL for clients, as text for a shell, which reads the password from a file (`$(cat FILE)`). If the
            server has no port, this is the URL of the socket.
    """

    service: str
    socket: Path
    configuration: str
    login: str
    published: str

    @property
    def url(self) -> str:
        """URL for the stack's own services, over the socket."""
        return f"unix://{f'{self.login}@' if self.login else ''}{self.socket}"


def redis(service: str, settings: Settings, run: RunDir, secrets: Secrets) -> Redis:
    """Return the Redis server of a service.

    Args:
        service: `cache` or `queue`.
        settings: settings of the stack.
        run: run directory of the stack.
        secrets: store to which the passwords are added.
    """
    prefix, socket = service.upper(), run.socket(service)
    port, login, published = settings[f"{prefix}_PORT"], "", f"unix://{socket}"
    access: list[str] = []
    if port:
        password = settings.get(f"{prefix}_PASSWORD") or secrets.generate(f"{service}_password")
        file = secrets.add(f"{service}_password", password)
        published = f"redis://:$(cat {file})@{settings.host}:{port}/0"
        login, access = f":{password}", [f"bind {_addresses(settings)}", f"requirepass {password}"]
        if service == "cache":
            own_password = secrets.generate("cache_server_password")
            secrets.add("cache_server_password", own_password)
            login, access[1:] = f"{SERVER}:{own_password}", users(password, own_password)
    lines = [
        f"include {OPTIONS / service}.conf",
        f"unixsocket {socket}",
        "unixsocketperm 700",
        f"port {port or 0}",
        *access,
        f"dir {run.queue if service == 'queue' else run.path}",
        "daemonize no",
        'logfile ""',
    ]
    return Redis(service, socket, "\n".join(lines) + "\n", login, published)


def users(password: str, own_password: str) -> list[str]:
    """Return the users of the cache as lines of Redis configuration.

    Args:
        password: password of the default user, which trainers use; it has only the rights that the client needs.
        own_password: password of the user `SERVER`.
    """
    rights = (OPTIONS / "trainers.acl").read_text(encoding="ascii").strip()
    return [f"user default on >{password} {rights}", f"user {SERVER} on >{own_password} ~* &* +@all"]


def _addresses(settings: Settings) -> str:
    """Return the addresses to listen on, in Redis syntax."""
    address = ipaddress.ip_address(settings["BIND_ADDRESS"])
    loopback = "" if address.is_loopback or str(address) == "0.0.0.0" else "127.0.0.1 "
    return f"{loopback}{address}"
