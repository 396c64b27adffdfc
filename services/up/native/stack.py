"""Describe the programs and files of a stack of local processes or Apptainer images.

Both follow from the settings, the chosen model servers, and the table of services (`services.stack.services_table`).
`services.up.compose` describes a stack in Docker Compose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from services.gateway import config as gateway
from services.gateway import tls
from services.gateway.tls import Tls
from services.judge import engine
from services.stack import ports
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.secrets import Secrets
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, JUDGE, REWARD_MODEL, ModelServer
from services.up.native import programs
from services.up.native.models import Launcher, ModelPrograms
from services.up.native.programs import Inputs, Program, Redis
from services.up.plan import RunningStack


@dataclass(frozen=True)
class Runtime:
    """How programs are run: directly on this machine, or in images.

    Args:
        executables: paths of nginx and redis-server, by name.
        launcher: builds the commands of the model servers.
        wrap: converts a program to one that runs in an image; returns it unchanged if there are no images.
        backend: the deployment: `native` or `apptainer`, as in the setting STACK.
    """

    executables: Mapping[str, str]
    launcher: Launcher = field(default_factory=Launcher)
    wrap: Callable[[Program], Program] = lambda program: program
    backend: str = "native"


@dataclass(frozen=True)
class Stack:
    """Description of a stack, before any file is written.

    Args:
        programs: programs of the services, in display order.
        watch: program that watches the services.
        configuration: text of configuration files, by file name.
        gateway: text of the gateway's files, by file name.
        secrets: keys and passwords.
        urls: URLs of the services, by the client's environment variables.
        ports: address and port by name; the gateway's ports are first.
        host: host name or address at which this machine reaches the gateway.
        cache: Redis server of the result cache; None if there is no cache.
        backend: the deployment: `native` or `apptainer`, as in the setting STACK.
    """

    programs: Sequence[Program]
    watch: Program
    configuration: Mapping[str, str]
    gateway: Mapping[str, str]
    secrets: Secrets
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    host: str
    cache: Redis | None = None
    backend: str = "native"

    @property
    def names(self) -> list[str]:
        """Names of the services."""
        return [program.name for program in self.programs]

    def to_running_stack(self, settings: Settings, summarize: Callable[[], None]) -> RunningStack:
        """Return what the final check and the summary of `make up` need.

        Args:
            settings: settings of the stack.
            summarize: prints how to reach the stack.
        """
        addresses = {**self.urls, **({"REWARD_CACHE_URL": self.cache.url} if self.cache else {})}
        judge = next((engine.served_name(program.command) for program in self.programs if program.name == "judge"), "")
        return RunningStack(settings, self.names, addresses, judge, summarize)

    def files(self, run: RunDir) -> dict[str, str]:
        """Return the text of all files except those in `secrets`, by file name."""
        return {**programs.files([*self.programs, self.watch], run), **self.configuration, **self.gateway}

    def to_state(self, session: int) -> Running:
        """Return the state that `make up` saves once this stack runs.

        Args:
            session: session id of supervisord.
        """
        gateway_digest = programs.digest(part for name_and_text in self.gateway.items() for part in name_and_text)
        port_numbers = {name: port for name, (_, port) in self.ports.items()}
        has_tls = "tls.conf" in self.gateway
        names, backend = self.names, self.backend
        return Running(session, boot_id(), gateway_digest, self.host, port_numbers, names, has_tls, backend=backend)


def describe(
    settings: Settings, run: RunDir, runtime: Runtime, chosen: Sequence[ModelServer], running: Running | None
) -> Stack:
    """Return the description of the stack that `make up` would run; change nothing.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        runtime: the machine or images in which programs run.
        chosen: model servers to run.
        running: state of the running stack; None if none runs.

    Raises:
        StackError: there are too few GPUs, a model or the program of its server is missing, or a TLS file is unusable.
    """
    secrets, urls, has_rules = Secrets(run), model_servers.urls(settings, chosen), settings["RULES"] == "on"
    redis_servers = [programs.redis(service, settings, run, secrets) for service in ("cache", "queue") if has_rules]
    inputs = Inputs(settings, run, secrets, urls, redis_servers)
    wanted_ports = model_servers.wanted_ports(settings, chosen)
    embedding_port = (running.ports.get(ports.EMBEDDING_BACKEND) if running else None) or ports.find_free()
    if EMBEDDING in chosen:
        wanted_ports[ports.EMBEDDING_BACKEND] = ports.LOOPBACK, embedding_port
    backends = [programs.rules(settings, run, inputs)] if has_rules else []
    backends += ModelPrograms(settings, run, inputs, runtime.launcher).describe(chosen, embedding_port)
    redis_programs = [server.program(settings, runtime.executables, run) for server in redis_servers]
    workers = programs.workers(settings, inputs) if has_rules else []
    nginx = programs.gateway(runtime.executables["nginx"], settings, run)
    listen = {name: settings.listen(port) for name, port in ports.GATEWAY.items()}
    tls_config, paths = _tls(settings, secrets), model_servers.paths(chosen)
    render_gateway = partial(gateway.files, settings=settings, listen=listen, tls=tls_config, paths=paths)
    servers = gateway_upstreams(backends, settings)
    return Stack(
        [runtime.wrap(program) for program in (*redis_programs, *backends, *workers, nginx)],
        programs.watch(settings, run, _discovery(settings, servers, render_gateway)),
        {f"{server.service}.conf": server.configuration for server in redis_servers},
        render_gateway(servers),
        secrets,
        urls,
        wanted_ports,
        settings.local_address,
        next(iter(redis_servers), None),
        runtime.backend,
    )


def _tls(settings: Settings, secrets: Secrets) -> Tls | None:
    """Add the TLS files to the secrets, and return the gateway's TLS configuration; None if TLS is off."""
    found = tls.contents(settings)
    for name, text in found.items():
        secrets.add(name, text)
    return Tls(secrets.folder, " ".join(map(secrets.digest, found))) if found else None


def gateway_upstreams(backends: Sequence[Program], settings: Settings) -> dict[str, list[str]]:
    """Return the addresses of each service's servers in nginx syntax. `watch` adds servers on other nodes later.

    Args:
        backends: programs behind the gateway.
        settings: settings of the stack.
    """
    servers: dict[str, list[str]] = {}
    for program in backends:
        servers.setdefault(program.service, []).append(program.server)
    for server in model_servers.discovered_servers(settings):
        servers.setdefault(server.name, [gateway.NO_SERVER])
    if REWARD_MODEL.name in servers:  # clients reach the reward model at the judge's port, so this port must exist
        servers.setdefault(JUDGE.name, [gateway.NO_SERVER])
    return servers


def _discovery(
    settings: Settings,
    servers: Mapping[str, Sequence[str]],
    render_gateway: Callable[[Mapping[str, Sequence[str]]], dict[str, str]],
) -> list[dict[str, Any]]:
    """For each service that can have servers on other nodes, return the arguments of `watch.Upstream` except `run`."""
    found = []
    for server in model_servers.discovered_servers(settings):
        file, folder = gateway.servers_file(server.name, settings), str(ROOT / settings[server.folder_setting])
        text = render_gateway({**servers, server.name: ["${SERVER}"]})[file]
        own = [address for address in servers[server.name] if address != gateway.NO_SERVER]
        found.append({"file": file, "text": text, "own": own, "folder": folder, "variable": server.url_setting})
    return found
