"""Asks each service of the native stack whether it is well."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from rewardstack.errors import ServiceError
from rewardstack_rules.jobs.health import problem
from rewardstack_rules.jobs.link import connect
from services.stack import ports, probes, processes
from services.stack.ports import EMBEDDING_BACKEND, LOOPBACK
from services.stack.rundir import RunDir, Running
from services.up.native import ownership
from services.up.services import kind_of

READY = {"rules": "/ready", "judge": "/health"}
"""What those services are asked that listen on a Unix socket."""
LIVES = {**READY, "rules": "/health"}
"""The same, where they may be busy, or wait for another service."""
PATIENCE = 10.0
"""Seconds that one may take to answer that may be busy."""


def probe(name: str, run: RunDir, running: Running) -> str:
    """What is wrong with a service; empty where it is well.

    Args:
        name: as in supervisord.conf.
        run: directory of the stack.
        running: what was started.
    """
    try:
        # In this order, for who answered may be gone by the time that it is looked for.
        return _probe(name, run, running, READY, probes.PATIENCE) or ownership.unbound(name, run, running)
    except ServiceError as error:
        return str(error)


def hangs(name: str, run: RunDir, running: Running) -> str:
    """Why a service is taken for hung; empty where it lives, however busy it is. Arguments as those of `probe`."""
    try:
        return _probe(name, run, running, LIVES, PATIENCE)
    except ServiceError:
        return ""  # the queue is away, which a worker waits for


def _probe(name: str, run: RunDir, running: Running, paths: Mapping[str, str], patience: float) -> str:
    kind = kind_of(name)
    if kind == "gateway":
        # Each of its ports has the gateway's own health.
        port = next(running.ports[name] for name in ports.GATEWAY.values() if name in running.ports)
        ask = probes.https if running.tls else probes.http
        return ask(f"{running.host}:{port}", "/gateway/health", patience)
    if kind == "embedding":
        return probes.http(f"{LOOPBACK}:{running.ports[EMBEDDING_BACKEND]}", "/health", patience)
    if kind == "worker":
        return _worker(name, run, running)
    if kind in paths:
        return probes.http_socket(run.socket(name), paths[kind], patience)
    return probes.redis(run.socket(kind), patience)


def _worker(name: str, run: RunDir, running: Running) -> str:
    """A worker tells the queue now and then that it lives; in an image it is a child of what supervisord started.

    Raises:
        ServiceError: the queue does not answer.
    """
    if (group := run.process_group(name)) is None:
        return "not started yet"
    pids = {process.pid for process in processes.members(running.session, group)}
    url = (run.path / "secrets/reward_queue_url").read_text(encoding="utf-8")
    return problem(connect(url, retries=0), socket.gethostname(), pids)
