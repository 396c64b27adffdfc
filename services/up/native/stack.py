"""What `make up` is to run: programs, configuration, secrets and addresses, all from the settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from services.gateway import config as gateway
from services.gateway import tls
from services.gateway.tls import Tls
from services.judge import engine
from services.stack import ports
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.secrets import Secrets
from services.stack.settings import KEYS, Settings
from services.stack.template import fill
from services.up import model_servers
from services.up.model_servers import EMBEDDING, SERVERS, ModelServer
from services.up.native import following, model_programs, programs
from services.up.native.environments import Environments
from services.up.native.model_programs import INSTALLED, Launcher
from services.up.native.programs import Program
from services.up.native.redis import Redis, redis

TEMPLATE = ROOT / "services/up/native/templates/supervisord.conf"
FOLLOWING = TEMPLATE.with_name("following.conf")
HEARTBEAT = TEMPLATE.with_name("heartbeat.conf")


@dataclass(frozen=True)
class Place:
    """Where programs run: on this machine as they are, or out of images.

    Args:
        programs: paths of nginx and redis-server there.
        launcher: of the model servers.
        inside: a program as it is started there.
        way: the value of STACK that stands for it.
    """

    programs: Mapping[str, str]
    launcher: Launcher = INSTALLED
    inside: Callable[[Program], Program] = lambda program: program
    way: str = "native"


@dataclass(frozen=True)
class Stack:
    """What is to run; nothing of it is written yet.

    Args:
        programs: in the order in which they start.
        configuration: of the programs, text by name of the file.
        gateway: files of the gateway, text by name.
        secrets: keys and passwords.
        urls: where clients find the services, by the client's variable.
        ports: address and port by name, that of the gateway first.
        host: by which this machine reaches the gateway.
        unwell_seconds: after which a service that was well, and is not any more, is ended; 0 for never.
        cache: the Redis of results; None where there is none.
        way: the value of STACK that stands for how it runs.
        following: what the gateway follows, as `services.up.native.following` reads it.
    """

    programs: Sequence[Program]
    configuration: Mapping[str, str]
    gateway: Mapping[str, str]
    secrets: Secrets
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    host: str
    unwell_seconds: int
    cache: Redis | None = None
    way: str = "native"
    following: Sequence[Mapping[str, object]] = ()

    @property
    def names(self) -> list[str]:
        """Of the services."""
        return [program.name for program in self.programs]

    @property
    def judge_model(self) -> str:
        """That the default judge serves; empty where there is no judge."""
        return next((engine.served(program.command) for program in self.programs if program.name == "judge"), "")

    def files(self, run: RunDir) -> dict[str, str]:
        """The text of every file but the secrets, by name."""
        # supervisord gives up root's rights unless told otherwise, and could then not read the private directory.
        user = "user = root" if os.geteuid() == 0 else ""
        values = {
            "ROOT": str(ROOT),
            "RUN_DIR": str(run.path),
            "USER": user,
            "PYTHON": sys.executable,
            "UNHEALTHY_TIMEOUT": str(self.unwell_seconds),
        }
        head = fill(TEMPLATE, values)
        followed = {}
        if self.following:
            text = json.dumps(self.following, indent=1)
            followed[f"programs/{following.NAME}.json"] = text
            head += fill(FOLLOWING, {**values, "DIGEST": programs.digest([text])})
        if self.way != "native":
            head += fill(HEARTBEAT, values)
        written = {program.name: program.files(run) for program in self.programs}
        return {
            "supervisord.conf": head + "".join(section for section, _ in written.values()),
            **{f"programs/{name}.json": text for name, (_, text) in written.items()},
            **followed,
            **self.configuration,
            **self.gateway,
        }

    def running(self, session: int) -> Running:
        """What is remembered of it.

        Args:
            session: of supervisord.
        """
        taken_up = programs.digest(part for file in self.gateway.items() for part in file)
        numbers = {name: port for name, (_, port) in self.ports.items()}
        tls = "tls.conf" in self.gateway
        return Running(session, boot_id(), taken_up, self.host, numbers, self.names, tls, way=self.way)


def describe(
    settings: Settings, run: RunDir, place: Place, chosen: Sequence[ModelServer], running: Running | None
) -> Stack:
    """What is to run; nothing of the stack is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        place: where programs run.
        chosen: model servers.
        running: what runs already.

    Raises:
        StackError: there are too few GPUs, or a model server's program cannot be had.
    """
    secrets, backend = Secrets(run), model_programs.backend_port(running)
    scores = settings["RULES"] == "on"
    redises = [redis(service, settings, run, secrets) for service in ("cache", "queue") if scores]
    urls = model_servers.urls(settings, chosen)
    given = _environments(settings, run, secrets, urls, redises)
    models = model_programs.programs(settings, run, chosen, backend, given, place.launcher)
    behind = [*([programs.rules(settings, run, *given.scoring("rules"))] if scores else []), *models]
    every = _in_order(settings, run, place.programs, redises, behind, given)
    files = _gateway_files(settings, _tls(settings, secrets), model_servers.named(chosen))
    servers = servers_of(behind, settings)
    return Stack(
        [place.inside(program) for program in every],
        {f"{one.service}.conf": one.configuration for one in redises},
        files(servers),
        secrets,
        urls,
        _ports(settings, chosen, backend),
        settings.here,
        settings.number("UNHEALTHY_TIMEOUT"),
        next(iter(redises), None),
        place.way,
        _following(settings, servers, files),
    )


def _in_order(
    settings: Settings,
    run: RunDir,
    found: Mapping[str, str],
    redises: Sequence[Redis],
    behind: Sequence[Program],
    given: Environments,
) -> list[Program]:
    """All programs as they start, those behind the gateway among them."""
    stores = [programs.redis(one.service, found["redis-server"], run, one.configuration) for one in redises]
    workers = programs.workers(settings, *given.scoring("worker")) if redises else []
    nginx = programs.gateway(gateway.command(found["nginx"], run.path), settings)
    return [*stores, *behind, *workers, nginx]


def _ports(settings: Settings, chosen: Sequence[ModelServer], backend: int) -> dict[str, tuple[str, int]]:
    """Address and port by name, the one that only the gateway asks among them."""
    wanted = model_servers.wanted_ports(settings, chosen)
    return {**wanted, **({ports.EMBEDDING_BACKEND: (ports.LOOPBACK, backend)} if EMBEDDING in chosen else {})}


def _environments(
    settings: Settings, run: RunDir, secrets: Secrets, urls: Mapping[str, str], redises: Sequence[Redis]
) -> Environments:
    hidden = {f"REWARD_{one.service.upper()}_URL": one.url for one in redises}
    hidden |= {**{name: settings[name] for name in KEYS}, "HF_TOKEN": os.environ.get("HF_TOKEN", "")}
    values = {
        **settings,
        **{server.url: urls.get(server.url, "") for server in SERVERS},
        "REWARD_SOCKET": str(run.socket("rules")),
        tls.TRUST: tls.trusted(settings),
    }
    return Environments(values, hidden, settings, secrets)


def _tls(settings: Settings, secrets: Secrets) -> Tls | None:
    """What the gateway is given for TLS; secrets take up the files."""
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
    """Where the servers of each service listen, as nginx writes it; those on other nodes are added as they come.

    Args:
        behind: programs that the gateway passes requests to.
        settings: of the stack.
    """
    servers: dict[str, list[str]] = {}
    for program in behind:
        servers.setdefault(program.service, []).append(program.server)
    for server in model_servers.followed(settings):
        servers.setdefault(server.name, [gateway.NOBODY])
    return servers


def _following(
    settings: Settings,
    servers: Mapping[str, Sequence[str]],
    files: Callable[[Mapping[str, Sequence[str]]], dict[str, str]],
) -> list[Mapping[str, object]]:
    """What `following` reads: of each service with servers on other nodes, their folder and the gateway's file."""
    described: list[Mapping[str, object]] = []
    for server in model_servers.followed(settings):
        variable, file = gateway.variable(server.name), gateway.servers_file(server.name, settings)
        text = files({**servers, server.name: [f"${{{variable}}}"]})[file]
        own = [one for one in servers[server.name] if one != gateway.NOBODY]
        known = {"file": file, "text": text, "variable": variable, "own": own, "nobody": gateway.NOBODY}
        described.append({**known, "folder": str(ROOT / settings[server.folder]), "url": server.url})
    return described
