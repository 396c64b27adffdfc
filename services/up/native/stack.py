"""What `make up` runs: programs, configuration, secrets and addresses, all from the settings and the service table."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.gateway import config as gateway
from services.gateway import tls
from services.gateway.tls import Tls
from services.judge import engine
from services.stack import ports
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.secrets import Secrets
from services.stack.settings import KEYS, Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, SERVERS, ModelServer
from services.up.native import config, models, programs
from services.up.native.models import INSTALLED, Launcher
from services.up.native.programs import Inputs, Program
from services.up.native.redis import Redis, redis
from services.up.native.replicas import DISCOVERY
from services.up.plan import Started


@dataclass(frozen=True)
class Runtime:
    """Where programs run: on this machine as they are, or in images.

    Args:
        programs: paths of nginx and redis-server there.
        launcher: of the model servers.
        wrap: returns a program as it is started there.
        backend: the value of STACK that stands for it.
    """

    programs: Mapping[str, str]
    launcher: Launcher = INSTALLED
    wrap: Callable[[Program], Program] = lambda program: program
    backend: str = "native"


@dataclass(frozen=True)
class Stack:
    """What is to run; nothing of it is written yet.

    Args:
        programs: the services, in the order in which they are listed.
        watch: the program that watches them.
        configuration: of programs, text by name of the file.
        gateway: files of the gateway, text by name.
        secrets: keys and passwords.
        urls: where clients find the services, by the client's variable.
        ports: address and port by name, those of the gateway first.
        host: by which this machine reaches the gateway.
        cache: the Redis of results; None where there is none.
        backend: the value of STACK that stands for how it runs.
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
        """The names of the services."""
        return [program.name for program in self.programs]

    def started(self, settings: Settings, summarize: Callable[[], None]) -> Started:
        """Return what check and summary of `make up` need of it.

        Args:
            settings: of the stack.
            summarize: prints how to reach it.
        """
        addresses = {**self.urls, **({"REWARD_CACHE_URL": self.cache.url} if self.cache else {})}
        return Started(settings, self.names, addresses, self.judge_model, summarize)

    @property
    def judge_model(self) -> str:
        """The model of the default judge; empty where there is no judge."""
        return next((engine.served(program.command) for program in self.programs if program.name == "judge"), "")

    def files(self, run: RunDir) -> dict[str, str]:
        """Return the text of every file but the secrets, by name."""
        return {**config.files([*self.programs, self.watch], run), **self.configuration, **self.gateway}

    def running(self, session: int) -> Running:
        """Return what is recorded of it once it runs.

        Args:
            session: of supervisord.
        """
        loaded = programs.digest(part for file in self.gateway.items() for part in file)
        numbers = {name: port for name, (_, port) in self.ports.items()}
        has_tls = "tls.conf" in self.gateway
        return Running(session, boot_id(), loaded, self.host, numbers, self.names, has_tls, backend=self.backend)


def describe(
    settings: Settings, run: RunDir, runtime: Runtime, chosen: Sequence[ModelServer], running: Running | None
) -> Stack:
    """Return what is to run; nothing is changed.

    Args:
        running: what runs already.

    Raises:
        StackError: there are too few GPUs, or a model server's program is not available.
    """
    secrets, urls = Secrets(run), model_servers.urls(settings, chosen)
    scores = settings["RULES"] == "on"
    redises = [redis(service, settings, run, secrets) for service in ("cache", "queue") if scores]
    inputs = _inputs(settings, run, secrets, urls, redises)
    # The embedding server that runs keeps its own port.
    backend_port = (running.ports.get(ports.EMBEDDING_BACKEND) if running else None) or ports.free()
    behind = [programs.rules(settings, run, inputs)] if scores else []
    behind += models.programs(settings, run, chosen, backend_port, inputs, runtime.launcher)
    stores = [programs.redis(one, settings, runtime.programs, run) for one in redises]
    workers = programs.workers(settings, inputs) if scores else []
    nginx = programs.gateway(runtime.programs["nginx"], settings, run)
    files = _gateway_files(settings, _tls(settings, secrets), model_servers.named(chosen))
    servers = servers_of(behind, settings)
    discovery = json.dumps(_discovery(settings, servers, files), indent=1)
    return Stack(
        [runtime.wrap(program) for program in (*stores, *behind, *workers, nginx)],
        programs.watch(settings, run, discovery),
        {**{f"{one.service}.conf": one.configuration for one in redises}, DISCOVERY: discovery},
        files(servers),
        secrets,
        urls,
        _ports(settings, chosen, backend_port),
        settings.here,
        next(iter(redises), None),
        runtime.backend,
    )


def _ports(settings: Settings, chosen: Sequence[ModelServer], backend_port: int) -> dict[str, tuple[str, int]]:
    """Address and port by name, also of the one that only the gateway asks."""
    wanted = model_servers.wanted_ports(settings, chosen)
    return {**wanted, **({ports.EMBEDDING_BACKEND: (ports.LOOPBACK, backend_port)} if EMBEDDING in chosen else {})}


def _inputs(
    settings: Settings, run: RunDir, secrets: Secrets, urls: Mapping[str, str], redises: Sequence[Redis]
) -> Inputs:
    hidden = {f"REWARD_{one.service.upper()}_URL": one.url for one in redises}
    hidden |= {**{name: settings[name] for name in KEYS}, "HF_TOKEN": os.environ.get("HF_TOKEN", "")}
    values = {
        **settings,
        **{server.url: urls.get(server.url, "") for server in SERVERS},
        "REWARD_SOCKET": str(run.socket("rules")),
        tls.TRUST: tls.trusted(settings),
    }
    return Inputs(values, hidden, settings, secrets)


def _tls(settings: Settings, secrets: Secrets) -> Tls | None:
    """What the gateway is given for TLS; its files are added to the secrets."""
    found = tls.contents(settings)
    for name, text in found.items():
        secrets.add(name, text)
    return Tls(secrets.folder, " ".join(map(secrets.digest, found))) if found else None


def _gateway_files(
    settings: Settings, tls: Tls | None, judges: Mapping[str, str]
) -> Callable[[Mapping[str, Sequence[str]]], dict[str, str]]:
    """The gateway's files, text by name, as a function of the servers of each service."""
    listen = {name: settings.listen(port) for name, port in ports.GATEWAY.items()}
    return lambda servers: gateway.files(servers, settings, listen, tls, judges)


def servers_of(behind: Sequence[Program], settings: Settings) -> dict[str, list[str]]:
    """Return where the servers of each service listen, as nginx writes it; `watch` adds those of other nodes.

    Args:
        behind: programs that the gateway passes requests to.
    """
    servers: dict[str, list[str]] = {}
    for program in behind:
        servers.setdefault(program.service, []).append(program.server)
    for server in model_servers.discovered(settings):
        servers.setdefault(server.name, [gateway.NOBODY])
    return servers


def _discovery(
    settings: Settings,
    servers: Mapping[str, Sequence[str]],
    files: Callable[[Mapping[str, Sequence[str]]], dict[str, str]],
) -> list[dict[str, Any]]:
    """The fields of `watch.Upstream` of each service with servers on other nodes."""
    found = []
    for server in model_servers.discovered(settings):
        variable, file = gateway.variable(server.name), gateway.servers_file(server.name, settings)
        text = files({**servers, server.name: [f"${{{variable}}}"]})[file]
        own = [one for one in servers[server.name] if one != gateway.NOBODY]
        folder = str(ROOT / Path(settings[server.folder]))
        described = {"file": file, "text": text, "variable": variable, "own": own, "nobody": gateway.NOBODY}
        found.append({**described, "folder": folder, "url": server.url})
    return found
