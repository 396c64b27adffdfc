"""Generate the commands of `env`, which set a trainer's URLs and keys in a shell; ignore these URLs in a later `up`."""

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
"""Variable that records which stack has set the trainer's variables: node, run directory and URLs."""
NO_PROXY = ("no_proxy", "NO_PROXY")


def exports(run: RunDir, environ: Mapping[str, str] = os.environ) -> str:
    """Return shell commands that set the trainer's variables.

    Args:
        run: run directory of the stack.
        environ: environment of the shell, whose `no_proxy` is extended.

    Raises:
        StackError: the stack is not running, or another process holds its port.
    """
    published = endpoints.published(run) if Supervisor(run).members() else None
    if published is None:
        raise StackError(f"no stack is up in {run.path}", "apptainer/stack.sh up")
    if problem := endpoints.port_conflict(run):
        raise StackError(problem, remedy("gateway", problem))
    servers = {name: value for name, value in published["servers"].items() if endpoints.NAME.fullmatch(name)}
    urls = [value for name, value in servers.items() if name.endswith("_URL")]
    variables = {**servers, **_no_proxy_variables(urls, environ), MARK: " ".join([_name(run.path), *urls])}
    if published.get("trust"):
        variables[TRUST] = published["trust"]
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def drop_own_urls(
    settings: Settings, run: RunDir, environ: Mapping[str, str] = os.environ
) -> tuple[Settings, dict[str, str]]:
    """Remove from the settings the URLs that `env` has set for this stack, or for a stack that no longer runs.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        environ: environment with the variables that `env` has set.

    Returns:
        The remaining settings, and the removed URLs by setting.
    """
    name, *urls = environ.get(MARK, "").split() or [""]
    dropped = {
        setting: settings[setting]
        for setting in (server.url_setting for server in SERVERS)
        if settings[setting] in urls and environ.get(setting) == settings[setting] and _is_over(name, run)
    }
    return Settings({**settings, **dict.fromkeys(dropped, "")}), dropped


def _is_over(name: str, run: RunDir) -> bool:
    """Return whether the stack that `MARK` names belongs to this run directory, or no longer runs on this node."""
    if name == _name(run.path):
        return True
    node, _, folder = name.partition(":")
    try:
        return node == socket.gethostname() and not Supervisor(RunDir(folder)).members()
    except (StackError, OSError):
        return False


def _name(folder: Path) -> str:
    return f"{socket.gethostname()}:{folder}"


def _no_proxy_variables(urls: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return `no_proxy` and `NO_PROXY` with the stack's hosts appended."""
    hosts = [urlsplit(url).hostname or "" for url in urls]
    lower, upper = (environ.get(name, "") for name in NO_PROXY)
    return {
        name: ",".join(dict.fromkeys([*filter(None, value.split(",")), *hosts]))
        for name, value in zip(NO_PROXY, (lower or upper, upper or lower), strict=True)
    }
