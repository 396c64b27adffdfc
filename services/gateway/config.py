"""The gateway's configuration: one server and one list of upstream servers for each service behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.stack.rundir import ROOT
from services.stack.settings import Settings
from services.stack.template import fill

TEMPLATES = ROOT / "services/gateway"
UPSTREAM = TEMPLATES / "upstream-list.conf.template"

BALANCING = {"least_conn": "least_conn", "affinity": "hash $http_x_prompt_affinity consistent"}
"""JUDGE_BALANCING as nginx writes it. With affinity, requests with the same X-Prompt-Affinity go to the same replica,
whose prefix cache has the beginning of their prompt; those without one are spread in turn."""

TRIES = 2
"""Servers that a request is sent to where the first breaks."""


@dataclass(frozen=True)
class Upstream:
    """The servers behind one service.

    Args:
        service: its name, and that of its template.
        servers: where each listens, as nginx writes it, such as `unix:/run/judge.sock` or `127.0.0.1:8081`.
        balancing: how a request finds its server, as nginx writes it.
        limits: of each server, as nginx writes them.
        keepalive_connections: idle connections kept to them by each of nginx's processes.
        keepalive_seconds: for so long; shorter than the servers themselves keep them.
    """

    service: str
    servers: Sequence[str]
    balancing: str = "least_conn"
    limits: str = ""
    keepalive_connections: int = 256
    keepalive_seconds: int = 4


def rules(servers: Sequence[str]) -> Upstream:
    """The reward servers'."""
    return Upstream("rules", servers, keepalive_connections=32, keepalive_seconds=30)


def judge(servers: Sequence[str], settings: Settings) -> Upstream:
    """The replicas' of vLLM, which closes an idle connection after 5 seconds.

    Three failures within five seconds take a replica out for five; a refusal is no failure. Under least connections a
    bound on each would only refuse what the replicas' own queues hold.
    """
    limits = " max_fails=3 fail_timeout=5s"
    if settings["JUDGE_BALANCING"] == "affinity":
        limits = f" max_conns={settings['JUDGE_MAX_CONNS']}{limits}"
    return Upstream("judge", servers, BALANCING[settings["JUDGE_BALANCING"]], limits)


def embedding(servers: Sequence[str]) -> Upstream:
    """The embedding servers'."""
    return Upstream("embedding", servers)


def files(upstreams: Sequence[Upstream], settings: Settings, listen: Mapping[str, str]) -> dict[str, str]:
    """The text of each file, by name; nginx is started with their folder as its prefix and `-c nginx.conf`.

    Args:
        upstreams: of the services that the gateway serves.
        settings: of the stack.
        listen: address and port by service.
    """
    parts = [f"include {kind}-{upstream.service}.conf;" for upstream in upstreams for kind in ("upstream", "server")]
    values = {
        **settings,
        # nginx gives up root's rights unless told otherwise, and could then not read a private directory.
        "NGINX_USER": "user root;" if os.geteuid() == 0 else "",
        "SERVICES": "\n    ".join(parts),
        "TRIES": str(TRIES),
    }
    written = {name: fill(TEMPLATES / f"{name}.template", values) for name in ("nginx.conf", "common.conf")}
    for upstream in upstreams:
        name = upstream.service
        written[f"upstream-{name}.conf"] = _upstream(upstream)
        server = {**values, f"LISTEN_{name.upper()}": listen[name]}
        written[f"server-{name}.conf"] = fill(TEMPLATES / f"{name}.conf.template", server)
    return written


def command(nginx: str, folder: Path) -> list[str]:
    """The command that starts the gateway.

    Args:
        nginx: the program.
        folder: that holds its files.
    """
    return [nginx, "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]


def _upstream(upstream: Upstream) -> str:
    values = {
        "NAME": upstream.service,
        "BALANCING": upstream.balancing,
        "SERVERS": "\n    ".join(f"server {server}{upstream.limits};" for server in upstream.servers),
        "KEEPALIVE_CONNECTIONS": str(upstream.keepalive_connections),
        "KEEPALIVE_SECONDS": str(upstream.keepalive_seconds),
    }
    return fill(UPSTREAM, values)
