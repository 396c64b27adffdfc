"""Asks each service whether it is well, in its own protocol."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from rewardstack_rules.jobs.health import problem
from rewardstack_rules.jobs.link import connect
from services.stack.ports import EMBEDDING_BACKEND
from services.stack.rundir import RunDir, Running
from services.stack.settings import Settings

PATIENCE = 2.0
"""Seconds a service may take to answer."""

REPLY_BYTES = 512


LOADING = ("judge", "embedding")
"""The services that load a model first."""

Probe = Callable[[RunDir, Running], str]
"""Returns an empty string where the service is well, else what is wrong."""


@dataclass(frozen=True)
class Service:
    """One service of the stack.

    Args:
        name: as in supervisord.conf.
        probe: asks it.
        remedy: what usually helps where it does not come up.
        loads: whether it loads a model first, which takes its time.
    """

    name: str
    probe: Probe
    remedy: str
    loads: bool = False


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
    return get(HTTPConnection(running.host, running.ports["REWARD_PORT"], timeout=PATIENCE), "/gateway/health")


def published_port(settings: Settings, port: str) -> str:
    """The gateway answers on one of its ports, by the name of the setting, to clients of this machine."""
    address = f"{settings.host}:{settings[port]}"
    return get(HTTPConnection(address, timeout=PATIENCE), "/gateway/health")


def unix_socket(service: str, path: str) -> Probe:
    """A probe that asks a service for a path on its Unix socket."""

    def probe(run: RunDir, running: Running) -> str:
        return get(UnixConnection(run.socket(service)), path)

    return probe


def embedding(run: RunDir, running: Running) -> str:
    """The embedding server answers /health on its own port."""
    return get(HTTPConnection("127.0.0.1", running.ports[EMBEDDING_BACKEND], timeout=PATIENCE), "/health")


def redis(port: str) -> Probe:
    """A probe of the Redis at the port of this setting: it answers a PING; one that wants a password is well too."""

    def probe(run: RunDir, running: Running) -> str:
        try:
            with socket.create_connection(("127.0.0.1", running.ports[port]), PATIENCE) as connection:
                connection.sendall(b"PING\r\n")
                reply = connection.recv(REPLY_BYTES)
        except OSError as error:
            return str(error)
        return "" if reply.startswith((b"+PONG", b"-NOAUTH")) else reply.decode(errors="replace").strip()

    return probe


def worker(name: str) -> Probe:
    """A probe of a worker: it tells the queue now and then that it lives."""

    def probe(run: RunDir, running: Running) -> str:
        if (pid := run.process_group(name)) is None:
            return "not started yet"
        queue = connect(f"redis://127.0.0.1:{running.ports['QUEUE_PORT']}/0", patience=0)
        return problem(queue, socket.gethostname(), pid)

    return probe


def get(connection: HTTPConnection, path: str) -> str:
    """Ask for a path: an empty string where the answer is 200, else what is wrong."""
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(REPLY_BYTES).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return str(error)
    finally:
        connection.close()
    return "" if response.status == 200 else f"{path} answers {response.status}: {text}"


PROBES: Mapping[str, Probe] = {
    "cache": redis("CACHE_PORT"),
    "embedding": embedding,
    "gateway": gateway,
    "queue": redis("QUEUE_PORT"),
}
PATHS = {"rules": "/ready", "judge": "/health"}
"""What those services are asked that listen on a Unix socket."""

REMEDIES = {
    "cache": "see that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine",
    "queue": "see that QUEUE_PORT is free and that the disk of RUN_DIR has room",
    "rules": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "worker": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "judge": "see what the log says of the model and of memory; JUDGE=off leaves the judge out",
    "embedding": "see what the log says of the model and of memory; EMBEDDING=off leaves it out",
    "gateway": "see that its ports are free and BIND_ADDRESS is an address of this machine",
}


def services(names: Iterable[str]) -> list[Service]:
    """The services of these names; a second replica's has a number behind it, such as `judge-2`."""
    kinds = {name: name.partition("-")[0] for name in names}
    return [Service(name, _probe(name, kind), REMEDIES[kind], kind in LOADING) for name, kind in kinds.items()]


def _probe(name: str, kind: str) -> Probe:
    if kind == "worker":
        return worker(name)
    return PROBES.get(kind) or unix_socket(name, PATHS[kind])
