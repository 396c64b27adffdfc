"""`apptainer/stack.sh up`: the native way's start, out of images, and the file that trainers read."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from services.gateway import tls
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.up.apptainer import endpoints, node
from services.up.apptainer.place import runtime_of
from services.up.model_servers import SERVERS, ModelServer
from services.up.native.stack import Stack
from services.up.native.supervisor import Supervisor
from services.up.native.up import start
from services.up.plan import Started
from services.up.summary import KEYS


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> Started:
    """Start what does not run yet, and wait until it is healthy; its summary publishes where it is.

    Args:
        settings: of the stack, with the ports that it takes.
        run: its directory.
        chosen: model servers.

    Raises:
        StackError: a service does not become healthy.
    """
    file = ROOT / (settings["ENDPOINTS_FILE"] or run.path / "endpoints.json")
    if not os.access(file.parent, os.W_OK):
        raise StackError(
            f"ENDPOINTS_FILE: {file.parent} is no folder that you may write to", "make it, or name another"
        )
    if not Supervisor(run).states():
        endpoints.withdraw(run)  # of a stack that was killed
    node.keep_secret(run)
    settings = node.with_keys(settings, run)
    try:
        stack = start(settings, run, runtime_of(settings, run), chosen)
    except StackError:
        if not Supervisor(run).states():
            endpoints.withdraw(run)  # nobody beats any more
        raise
    return stack.started(settings, partial(_publish, settings, run, stack, file))


def _publish(settings: Settings, run: RunDir, stack: Stack, file: Path) -> None:
    """Write the endpoints file, and print how trainers use it."""
    endpoints.publish(run, file, servers(settings, stack), tls.trusted(settings))
    say(f"\nThe stack is up; {file} says where, and in the shell of your trainer:\n")
    say(f'  eval "$({ROOT}/apptainer/stack.sh env --run {run.path})"', whole=True)
    if "PAGE_PORT" in stack.ports:
        say(f"\nstatus page  {_url(settings, 'PAGE_PORT')}/", whole=True)
    say(f"logs         {run.logs}")


def servers(settings: Settings, stack: Stack) -> dict[str, str]:
    """Addresses and keys of what runs, by the client's variable.

    Args:
        settings: of the stack.
        stack: that runs.
    """
    own = {"REWARD_SERVER_URL": "REWARD_PORT", **{server.url: server.port for server in SERVERS}}
    found = {}
    for url, port in own.items():
        if port not in stack.ports:
            continue
        key, source = KEYS[url]
        found[url] = _url(settings, port)
        found[key] = settings[source].split(",")[0].strip()
    return found


def _url(settings: Settings, port: str) -> str:
    """An address that other nodes reach, too, where the stack listens on all of its own."""
    if settings.open_to_all and not settings["TLS_NAME"]:
        return f"{'https' if settings.tls else 'http'}://{socket.gethostname()}:{settings[port]}"
    return settings.url(port)
