"""What `make up` is to run: programs, configuration, secrets and addresses, all from the settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.gateway import config as gateway
from services.gateway import tls
from services.gateway.tls import Tls
from services.stack import ports
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.secrets import Secrets
from services.stack.settings import KEYS, Settings
from services.stack.template import fill
from services.up import model_servers
from services.up.model_servers import EMBEDDING, SERVERS, ModelServer
from services.up.native import model_programs, programs
from services.up.native.environments import Environments
from services.up.native.programs import Program
from services.up.native.redis import Redis, redis

TEMPLATE = ROOT / "services/up/native/templates/supervisord.conf"
PORTS = {"rules": "REWARD_PORT", "judge": "JUDGE_PORT", "embedding": "EMBEDDING_PORT"}
"""The setting of a service's port at the gateway."""


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

    @property
    def names(self) -> list[str]:
        """Of the services."""
        return [program.name for program in self.programs]

    def files(self, run: RunDir) -> dict[str, str]:
        """The text of every file but the secrets, by name."""
        # supervisord gives up root's rights unless told otherwise, and could then not read the private directory.
        user = "user = root" if os.geteuid() == 0 else ""
        values = {
            "ROOT": str(ROOT),
            "RUN_DIR": str(run.path),
            "USER": user,
            "PYTHON": sys.executable,
            "UNWELL_SECONDS": str(self.unwell_seconds),
        }
        head = fill(TEMPLATE, values)
        written = {program.name: program.files(run) for program in self.programs}
        return {
            "supervisord.conf": head + "".join(section for section, _ in written.values()),
            **{f"programs/{name}.json": text for name, (_, text) in written.items()},
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
        return Running(session, boot_id(), taken_up, self.host, numbers, self.names, "tls.conf" in self.gateway)


def describe(
    settings: Settings,
    run: RunDir,
    found: Mapping[str, str],
    chosen: Sequence[ModelServer],
    running: Running | None,
    prefix: Sequence[str] = (),
) -> Stack:
    """What is to run; nothing of the stack is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        found: paths of nginx and redis-server.
        chosen: model servers.
        running: what runs already.
        prefix: command before that of every program, such as `apptainer exec IMAGE`.

    Raises:
        StackError: there are too few GPUs, or a model server's program cannot be had.
    """
    secrets, backend = Secrets(run), model_programs.backend_port(running)
    cache, queue = (redis(service, settings, run, secrets) for service in ("cache", "queue"))
    urls = model_servers.urls(settings, chosen)
    given = _environments(settings, run, secrets, urls, (cache, queue))
    stores = [programs.redis(one.service, found["redis-server"], run, one.configuration) for one in (cache, queue)]
    behind = [
        programs.rules(settings, run, *given.scoring("rules")),
        *model_programs.programs(settings, run, chosen, backend, given),
    ]
    workers = programs.workers(settings, *given.scoring("worker"))
    nginx = programs.gateway(gateway.command(found["nginx"], run.path), settings)
    return Stack(
        [replace(program, prefix=prefix) for program in (*stores, *behind, *workers, nginx)],
        {f"{one.service}.conf": one.configuration for one in (cache, queue)},
        gateway_files(behind, settings, _tls(settings, secrets), model_servers.named(chosen)),
        secrets,
        urls,
        _ports(settings, chosen, backend),
        "localhost" if settings.open_to_all else settings["BIND_ADDRESS"],
        settings.number("UNWELL_SECONDS"),
        cache,
    )


def _ports(settings: Settings, chosen: Sequence[ModelServer], backend: int) -> dict[str, tuple[str, int]]:
    """Address and port by name, the one that only the gateway asks among them."""
    wanted = ports.wanted(settings, ["REWARD_PORT", *(server.port for server in chosen)])
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


def gateway_files(
    behind: Sequence[Program],
    settings: Settings,
    tls: Tls | None = None,
    judges: Mapping[str, str] = gateway.NO_JUDGES,
) -> dict[str, str]:
    """The gateway's files, by name.

    Args:
        behind: programs that it passes requests to.
        settings: of the stack.
        tls: that it speaks; None for none.
        judges: the service that each named judge is.
    """
    servers: dict[str, list[str]] = {}
    for program in behind:
        servers.setdefault(program.service, []).append(program.server)
    listen = {name: settings.listen(port) for name, port in PORTS.items()}
    return gateway.files(servers, settings, listen, tls, judges)
