"""Check that each service is healthy, and that one of its processes has bound its port.

A port is chosen seconds before the service binds it. On a shared node, another user could bind it in the meantime and
receive keys and prompts. Therefore the checks verify in /proc that the listening socket belongs to a process of the
service. They need no third-party packages.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from services.stack import ports, probes, processes
from services.stack.ports import EMBEDDING_BACKEND, LOOPBACK
from services.stack.probes import RedisError
from services.stack.rundir import RunDir, Running
from services.stack.services_table import SERVICES
from services.up.services import TAKEN, kind_of

BUSY_TIMEOUT_SECONDS = 10.0
"""Timeout of a liveness probe in seconds. It is long, because the service may be busy."""
PORTS = {"gateway": tuple(ports.GATEWAY.values()), "embedding": (EMBEDDING_BACKEND,)}
"""Names of the ports of each kind of service. Services that are not listed use Unix sockets in the run directory."""


def problem(name: str, run: RunDir, running: Running) -> str:
    """Return the reason why a service is not healthy; empty if it is healthy.

    Args:
        name: name of the service or replica.
        run: run directory of the stack.
        running: state of the running stack.
    """
    try:
        # Probe first, then check the ports: if an unrelated process has answered the probe, the port check finds it.
        return _probe(name, run, running) or unbound_reason(name, run, running)
    except RedisError as error:
        return str(error)


def hung_reason(name: str, run: RunDir, running: Running) -> str:
    """Return the reason why a service is hung; empty if it works or is only busy. Parameters as in `problem`."""
    try:
        return _probe(name, run, running, is_liveness=True)
    except RedisError:
        return ""  # the queue does not answer, so the worker waits for it and is not hung


def _probe(name: str, run: RunDir, running: Running, is_liveness: bool = False) -> str:
    kind = kind_of(name)
    probe = SERVICES[kind].probe
    path, timeout = (probe.live, BUSY_TIMEOUT_SECONDS) if is_liveness else (probe.ready, probes.TIMEOUT_SECONDS)
    if kind == "gateway":
        # The gateway answers its health check on all of its ports, so one port is enough.
        port = next(running.ports[setting] for setting in PORTS["gateway"] if setting in running.ports)
        return probes.http(f"{running.host}:{port}", path, timeout, running.tls)
    if kind == "embedding":
        return probes.http(f"{LOOPBACK}:{running.ports[EMBEDDING_BACKEND]}", path, timeout)
    if kind == "worker":
        return _worker(name, run, running)
    return probes.http(run.socket(name), path, timeout) if path else probes.redis(_url(kind, run), timeout)


def _worker(name: str, run: RunDir, running: Running) -> str:
    """Return the reason why a worker is not healthy; empty if the queue has a recent heartbeat from the worker.

    A heartbeat from any process in the worker's process group counts, because supervisord does not know the process id
    of a worker that runs in an image.

    Raises:
        RedisError: the queue does not answer.
    """
    if (group := run.process_group(name)) is None:
        return "not started yet"
    url = _url("queue", run)
    seconds, _ = probes.redis_reply(url, ["TIME"])
    alive = probes.redis_reply(url, ["ZRANGEBYSCORE", WORKERS, f"{int(seconds) - SILENCE}", "+inf"])
    names = {f"{socket.gethostname()}-{process.pid}" for process in processes.members(running.session, group)}
    return "" if names & {worker.decode() for worker in alive} else "the queue has no heartbeat of this worker"


def _url(service: str, run: RunDir) -> str:
    """Return the URL of the stack's cache or queue, with its password."""
    return (run.path / f"secrets/reward_{service}_url").read_text(encoding="utf-8")


def port_conflict(name: str, run: RunDir, running: Running) -> str:
    """Return a message about another process that receives the requests for a service; empty if there is none.

    Parameters as in `problem`.
    """
    for setting, host, port in _ports(name, running):
        for sockets in _answering(host, port):
            if sockets and not _is_owned(sockets, name, run, running):
                return (
                    f"{setting}: port {port} {TAKEN} {ports.owner(sockets).description}, "
                    f"which answers instead of {name}"
                )
    return ""


def unbound_reason(name: str, run: RunDir, running: Running) -> str:
    """Return the reason why a service does not hold its ports; empty if it does.

    The reason is that another process holds a port, or that no process does.

    Parameters as in `problem`.
    """
    if conflict := port_conflict(name, run, running):
        return conflict
    silent = (port for _, host, port in _ports(name, running) if not any(_answering(host, port)))
    return next((f"no process listens on port {port}" for port in silent), "")


def _ports(name: str, running: Running) -> Iterator[tuple[str, str, int]]:
    """Yield setting, host and number of each port that a service listens on."""
    kind = kind_of(name)
    for setting in PORTS.get(kind, ()):
        if setting in running.ports:
            yield setting, running.host if kind == "gateway" else LOOPBACK, running.ports[setting]


def _answering(host: str, port: int) -> list[dict[str, str]]:
    """Return the sockets that accept connections on a port, for each address of a host. The host may be a name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [ports.accepting_sockets(str(entry[4][0]), port) for entry in found]


def _is_owned(sockets: dict[str, str], name: str, run: RunDir, running: Running) -> bool:
    """Return whether processes of the service hold all of these sockets."""
    group = run.process_group(name)
    members = [] if group is None else processes.members(running.session, group)
    return sockets.keys() <= {file for process in members for file in process.open_files}
