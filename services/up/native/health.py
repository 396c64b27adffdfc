"""Asks each service of the native stack whether it is well."""

from __future__ import annotations

import socket

from rewardstack_rules.jobs.health import problem
from rewardstack_rules.jobs.link import connect
from services.stack import probes
from services.stack.ports import EMBEDDING_BACKEND, LOOPBACK
from services.stack.rundir import RunDir, Running

PATHS = {"rules": "/ready", "judge": "/health"}
"""What those services are asked that listen on a Unix socket."""


def probe(name: str, run: RunDir, running: Running) -> str:
    """What is wrong with a service; empty where it is well.

    Args:
        name: as in supervisord.conf.
        run: directory of the stack.
        running: what was started.
    """
    kind = name.partition("-")[0]
    if kind == "gateway":
        port = running.ports.get("REWARD_PORT") or running.ports["JUDGE_PORT"]
        ask = probes.https if running.tls else probes.http
        return ask(f"{running.host}:{port}", "/gateway/health")
    if kind == "embedding":
        return probes.http(f"{LOOPBACK}:{running.ports[EMBEDDING_BACKEND]}", "/health")
    if kind == "worker":
        return _worker(name, run)
    if kind in PATHS:
        return probes.http_socket(run.socket(name), PATHS[kind])
    return probes.redis(run.socket(kind))


def _worker(name: str, run: RunDir) -> str:
    """A worker tells the queue now and then that it lives."""
    if (pid := run.process_group(name)) is None:
        return "not started yet"
    url = (run.path / "secrets/reward_queue_url").read_text(encoding="utf-8")
    return problem(connect(url, patience=0), socket.gethostname(), pid)
