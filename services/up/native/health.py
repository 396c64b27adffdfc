"""Asks each service whether it is healthy, and whose process holds its port.

A port is free when it is chosen, and bound seconds later. On a node that others use, whoever binds it in between is
sent keys and prompts. So what answers there must be held by a process of the service itself, which /proc says. Any
Python can ask.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from services.stack import listeners, ports, probes, processes
from services.stack.ports import EMBEDDING_BACKEND, LOOPBACK
from services.stack.probes import RedisError
from services.stack.rundir import RunDir, Running
from services.stack.services_table import SERVICES
from services.up.services import TAKEN, kind_of

BUSY_PATIENCE = 10.0
"""Seconds that a service may take to answer which may be busy."""
PORTS = {"gateway": tuple(ports.GATEWAY.values()), "embedding": (EMBEDDING_BACKEND,)}
"""Of each kind of service that listens on ports; the others listen on sockets in the run directory."""


def problem(name: str, run: RunDir, running: Running) -> str:
    """Return why a service is not healthy; empty where it is.

    Args:
        name: of the service or replica.
        running: what was started.
    """
    try:
        # In this order: whoever answered may be gone when it is looked for.
        return _probe(name, run, running, False, probes.PATIENCE) or unbound(name, run, running)
    except RedisError as error:
        return str(error)


def hung(name: str, run: RunDir, running: Running) -> str:
    """Return why a service counts as hung; empty where it works, however busy. Arguments as those of `problem`."""
    try:
        return _probe(name, run, running, True, BUSY_PATIENCE)
    except RedisError:
        return ""  # the queue does not answer, which a worker waits for


def _probe(name: str, run: RunDir, running: Running, live: bool, patience: float) -> str:
    kind = kind_of(name)
    probe = SERVICES[kind].probe
    path = probe.live if live else probe.ready
    if kind == "gateway":
        # Each of its ports has the gateway's own health.
        port = next(running.ports[setting] for setting in PORTS["gateway"] if setting in running.ports)
        ask = probes.https if running.tls else probes.http
        return ask(f"{running.host}:{port}", path, patience)
    if kind == "embedding":
        return probes.http(f"{LOOPBACK}:{running.ports[EMBEDDING_BACKEND]}", path, patience)
    if kind == "worker":
        return _worker(name, run, running)
    if path:
        return probes.http_socket(run.socket(name), path, patience)
    return probes.redis(run.socket(kind), patience)


def _worker(name: str, run: RunDir, running: Running) -> str:
    """A worker tells the queue now and then that it lives; in an image it is a child of what supervisord started.

    Raises:
        RedisError: the queue does not answer.
    """
    if (group := run.process_group(name)) is None:
        return "not started yet"
    url = (run.path / "secrets/reward_queue_url").read_text(encoding="utf-8")
    [[seconds, _]] = probes.redis_replies(url, ["TIME"])
    [heard] = probes.redis_replies(url, ["ZRANGEBYSCORE", WORKERS, f"{int(seconds) - SILENCE}", "+inf"])
    names = {f"{socket.gethostname()}-{process.pid}" for process in processes.members(running.session, group)}
    return "" if names & {one.decode() for one in heard} else "the queue has not heard of this worker"


def port_conflict(name: str, run: RunDir, running: Running) -> str:
    """Return who gets the requests for a service in its place, with the port; empty where nobody does.

    Arguments as those of `problem`.
    """
    for setting, host, port in _ports(name, running):
        for sockets in _answering(host, port):
            if sockets and not _is_owned(sockets, name, run, running):
                return f"{setting}: port {port} {TAKEN} {listeners.owner(sockets).who}, which answers in its place"
    return ""


def unbound(name: str, run: RunDir, running: Running) -> str:
    """Return why a service's ports are not its own: a conflict, or nobody listens; empty where they are.

    Arguments as those of `problem`.
    """
    if conflict := port_conflict(name, run, running):
        return conflict
    silent = (port for _, host, port in _ports(name, running) if not any(_answering(host, port)))
    return next((f"nobody listens on port {port}" for port in silent), "")


def _ports(name: str, running: Running) -> Iterator[tuple[str, str, int]]:
    """Setting, host and number of each port that a service listens on."""
    kind = kind_of(name)
    for setting in PORTS.get(kind, ()):
        if setting in running.ports:
            yield setting, running.host if kind == "gateway" else LOOPBACK, running.ports[setting]


def _answering(host: str, port: int) -> list[dict[str, str]]:
    """The sockets that accept connections at each address of a host, which may be a name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [listeners.answering(str(entry[4][0]), port) for entry in found]


def _is_owned(sockets: dict[str, str], name: str, run: RunDir, running: Running) -> bool:
    """Whether processes of the service hold all of these sockets."""
    group = run.process_group(name)
    members = [] if group is None else processes.members(running.session, group)
    return sockets.keys() <= {*listeners.opened(process.pid for process in members)}
