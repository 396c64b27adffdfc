"""`apptainer/stack.sh up`: run the native deployment's processes in images, and publish the endpoints file."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from services.gateway import tls
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.apptainer import endpoints, node
from services.up.apptainer.container_exec import BACKEND, default_model, get_image, images_runtime, unsupported_reason
from services.up.apptainer.images import runtime
from services.up.model_servers import EMBEDDING, SERVERS, ModelServer
from services.up.native.stack import Stack
from services.up.native.supervisor import Supervisor
from services.up.native.up import changes, start
from services.up.plan import Plan, RunningStack, Service, in_gib
from services.up.summary import URL_KEYS

SERVICES = ("cache", "gateway", "queue", "rules", "worker")
WITHOUT_RULES = ("gateway",)


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """Return the plan of `up` without changing anything.

    Raises:
        StackError: the run directory is on a shared file system, or Apptainer is not installed or too old.
    """
    node.require_local(run.path)
    runtime()
    last, supervisor = run.load(), Supervisor(run)
    running = last.services if last and supervisor.states() else []
    has_processes = bool(running or supervisor.members())
    settings = node.choose_ports(settings, last if has_processes else None)
    servers = named_judges.servers(settings, default_model(settings))
    choice = model_servers.choose(settings, running, servers, partial(unsupported_reason, servers=servers))
    full = node.add_keys(settings, run)
    names = SERVICES if settings["RULES"] == "on" else WITHOUT_RULES
    return Plan(
        backend=BACKEND,
        reason=reason,
        services=[
            *(_service(settings, name) for name in names),
            *(_model(server, settings) for server in choice.chosen),
        ],
        running=running,
        ports=model_servers.wanted_ports(settings, choice.chosen),
        held=last.ports.values() if last and has_processes else (),
        left_out=choice.left_out,
        warnings=[*choice.warnings, *warn_outdated(settings, [*names, *(server.name for server in choice.chosen)])],
        apply=partial(up, settings, run, choice.chosen),
        changes=partial(changes, full, run, images_runtime(full, run), choice.chosen, last)
        if last and running
        else None,
    )


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> RunningStack:
    """Start services that do not run yet, on the ports of the settings, and wait until they are healthy.

    The endpoints file is not published here. `summarize` of the returned stack publishes it, after the final check.

    Raises:
        StackError: a service does not become healthy.
    """
    file = ROOT / (settings["ENDPOINTS_FILE"] or run.path / "endpoints.json")
    if not os.access(file.parent, os.W_OK):
        raise StackError(
            f"ENDPOINTS_FILE: {file.parent} is not a folder that you can write to", "create it, or name another"
        )
    if not Supervisor(run).states():
        endpoints.withdraw(run)  # a stack that was killed has left its endpoints file
    node.keep_secret(run)
    settings = node.add_keys(settings, run)
    try:
        stack = start(settings, run, images_runtime(settings, run), chosen)
    except StackError:
        if not Supervisor(run).states():
            endpoints.withdraw(run)  # nothing renews the heartbeat any more
        raise
    return stack.to_running_stack(settings, partial(_publish, settings, run, stack, file))


def _publish(settings: Settings, run: RunDir, stack: Stack, file: Path) -> None:
    """Write the endpoints file, and print the command with which trainers use it."""
    endpoints.publish(run, file, servers(settings, stack), tls.trusted_ca_file(settings))
    say(f"\nThe stack is up. {file} has its URLs and keys. In the shell of your trainer, run:\n")
    say(f'  eval "$({ROOT}/apptainer/stack.sh env --run {run.path})"', whole=True)
    if "PAGE_PORT" in stack.ports:
        say(f"\nstatus page  {_url(settings, 'PAGE_PORT')}/", whole=True)
    say(f"logs         {run.logs}")


def servers(settings: Settings, stack: Stack) -> dict[str, str]:
    """Return the URLs and keys of the running servers, by the client's environment variable."""
    ports = {"REWARD_SERVER_URL": "REWARD_PORT", **{server.url_setting: server.port_setting for server in SERVERS}}
    found: dict[str, str] = {}
    for url, port in ports.items():
        if port not in stack.ports:
            continue
        key, source = URL_KEYS[url]
        found |= {url: _url(settings, port), key: settings[source].split(",")[0].strip()}
    return found


def warn_outdated(settings: Settings, services: Iterable[str]) -> list[str]:
    """Return a warning for each outdated image of these services."""
    images = dict.fromkeys(map(get_image, services))
    # Check only images that this user can rebuild. Other images were probably built from another checkout, so a
    # comparison with the file times of this checkout would mean nothing.
    own = [image for image in images if os.access(image.file(settings), os.W_OK)]
    return [
        f"{image.file(settings)} is older than its sources and is used anyway; make sif t={image.name} rebuilds it"
        for image in own
        if image.is_outdated(settings)
    ]


def _service(settings: Settings, name: str) -> Service:
    copies = settings.number("WORKERS") if name == "worker" else 1
    return Service(name, str(get_image(name).file(settings)), copies)


def _model(server: ModelServer, settings: Settings) -> Service:
    default = default_model(settings)
    served = (
        settings["EMBEDDING_MODEL"] if server == EMBEDDING else model_servers.served_model(server, settings, default)
    )
    memory = f"about {in_gib(model_servers.memory(server, settings))}"
    runs = f"{get_image(server.name).file(settings)}, {served}".rstrip(", ")
    return Service(server.name, runs, model_servers.replica_count(server, settings), memory)


def _url(settings: Settings, port: str) -> str:
    """Return a URL of the gateway.

    The host is the name of this node if the stack listens on all addresses and TLS_NAME is empty.
    """
    if settings.listens_everywhere and not settings["TLS_NAME"]:
        return f"{'https' if settings.tls else 'http'}://{socket.gethostname()}:{settings[port]}"
    return settings.url(port)
