"""What `env` sets in the shell of a trainer, and how the next `up` in that shell recognizes its own addresses."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from services.gateway.tls import TRUST
from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up.apptainer import endpoints
from services.up.model_servers import SERVERS
from services.up.native.supervisor import Supervisor
from services.up.services import remedy

MARK = "REWARDSTACK_ENV_OF"
"""The variable that says which stack has set the others: node, run directory, and the addresses."""
UNPROXIED = ("no_proxy", "NO_PROXY")


def exports(run: RunDir, environ: Mapping[str, str] = os.environ) -> str:
    """Return lines for a shell that set the trainer's variables.

    Args:
        run: directory of the stack.
        environ: of that shell; hosts are added to those that it asks no proxy for.

    Raises:
        StackError: the stack is not up, or another process has its port.
    """
    published = endpoints.published(run) if Supervisor(run).members() else None
    if published is None:
        raise StackError(f"no stack is up in {run.path}", "apptainer/stack.sh up")
    if problem := endpoints.port_conflict(run):
        raise StackError(problem, remedy("gateway", problem))
    servers = {name: value for name, value in published["servers"].items() if endpoints.NAME.fullmatch(name)}
    urls = [value for name, value in servers.items() if name.endswith("_URL")]
    variables = {**servers, **_unproxied(urls, environ), MARK: " ".join([_name(run.path), *urls])}
    if published.get("trust"):
        variables[TRUST] = published["trust"]
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def without_own(
    settings: Settings, run: RunDir, environ: Mapping[str, str] = os.environ
) -> tuple[Settings, dict[str, str]]:
    """Return the settings without addresses that `env` has set: this stack's own, and those of one that is not up.

    Args:
        settings: of the stack.
        run: its directory.
        environ: that they may be from.

    Returns:
        The settings, and by the setting of each such address the address.
    """
    name, *urls = environ.get(MARK, "").split() or [""]
    ignored = {
        server.url: settings[server.url]
        for server in SERVERS
        if settings[server.url] in urls and environ.get(server.url) == settings[server.url] and _is_over(name, run)
    }
    return Settings({**settings, **dict.fromkeys(ignored, "")}), ignored


def _is_over(name: str, run: RunDir) -> bool:
    """Return whether a stack that `env` has named is the one of this directory, or one of this node that is not up."""
    if name == _name(run.path):
        return True
    node, _, folder = name.partition(":")
    try:
        return node == socket.gethostname() and not Supervisor(RunDir(folder)).members()
    except (StackError, OSError):
        return False


def _name(folder: Path) -> str:
    return f"{socket.gethostname()}:{folder}"


def _unproxied(urls: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return `no_proxy` in both spellings, with the stack's hosts behind those that are there."""
    hosts = [urlsplit(url).hostname or "" for url in urls]
    lower, upper = (environ.get(name, "") for name in UNPROXIED)
    return {
        name: ",".join(dict.fromkeys([*filter(None, there.split(",")), *hosts]))
        for name, there in zip(UNPROXIED, (lower or upper, upper or lower), strict=True)
    }
