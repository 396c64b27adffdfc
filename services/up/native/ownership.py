"""Whose a port is at which a service of the stack is asked: on a node that others use, one of them may have taken it.

A port is free when it is chosen, and bound seconds later. Whoever binds it in between is asked instead of the service,
and is sent keys and prompts. So what answers there must be held by a process of the service's own: that is read in
/proc, before anything is sent. No package need be installed for that.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from services.stack import listeners
from services.stack.ports import EMBEDDING_BACKEND, GATEWAY, LOOPBACK
from services.stack.rundir import RunDir, Running
from services.up.native import session
from services.up.services import TAKEN, kind_of

PORTS = {"gateway": tuple(GATEWAY.values()), "embedding": (EMBEDDING_BACKEND,)}
"""Of each kind of service that listens on ports; the others listen on sockets in the run directory."""


def stranger(name: str, run: RunDir, running: Running) -> str:
    """Who takes the requests for a service in its place, with the port; empty where nobody does.

    Args:
        name: of the service.
        run: directory of the stack.
        running: what was started.
    """
    for setting, host, port in _ports(name, running):
        for sockets in _answering(host, port):
            if sockets and not _owned(sockets, name, run, running):
                return f"{setting}: port {port} {TAKEN} {listeners.holder(sockets).who}, which answers in its place"
    return ""


def unbound(name: str, run: RunDir, running: Running) -> str:
    """What keeps a service's ports from being its own: a stranger, or nobody; empty where they are.

    Arguments as those of `stranger`.
    """
    for _, host, port in _ports(name, running):
        if not any(_answering(host, port)):
            return f"nobody listens on port {port}"
    return stranger(name, run, running)


def _ports(name: str, running: Running) -> Iterator[tuple[str, str, int]]:
    """Setting, host and number of each port that a service listens on."""
    kind = kind_of(name)
    for setting in PORTS.get(kind, ()):
        if setting in running.ports:
            yield setting, running.host if kind == "gateway" else LOOPBACK, running.ports[setting]


def _answering(host: str, port: int) -> list[dict[str, str]]:
    """The sockets that are asked at each address of a host, which may be a name."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [listeners.answering(str(entry[4][0]), port) for entry in found]


def _owned(sockets: dict[str, str], name: str, run: RunDir, running: Running) -> bool:
    """Whether processes of the service hold all of these sockets."""
    group = run.process_group(name)
    pids = [] if group is None else session.group(running.session, group)
    return sockets.keys() <= {*listeners.opened(pids)}
