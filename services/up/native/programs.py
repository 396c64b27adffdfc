"""The programs that supervisord keeps up, and how each is written down for it."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.stack.rundir import CHART_FILES, ROOT, RunDir
from services.stack.services_table import SERVICES
from services.stack.settings import Settings
from services.stack.template import fill
from services.up.services import service_of

TEMPLATE = ROOT / "services/up/native/templates/program.conf"
LAUNCH = (sys.executable, "-m", "services.up.native.launch")
WITH_KEYS = ("sh", str(CHART_FILES / "models/with_keys.sh"))
GUNICORN = (sys.executable, "-m", "gunicorn", "--config", "python:rewardstack_rules.http.gunicorn_conf")
WORKER = (sys.executable, "-m", "rewardstack_rules.jobs.worker")
IN_IMAGE = "APPTAINERENV_"
"""Before the name of a variable that a program is given in its image."""


@dataclass(frozen=True)
class Program:
    """One process that is kept up.

    Args:
        name: of the service; a second replica's has a number behind it, such as `judge-2`.
        command: that starts it.
        priority: those with lower ones start first and stop last.
        server: where it listens, as nginx writes it; empty where the gateway has nothing to do with it.
        start_seconds: that it must live to count as started.
        stop_seconds: that it is given to stop.
        stop_signal: that asks it to.
        environment: its variables beside those of the system; no secrets, for they are written into a file.
        keys: by variable, the file of a secret that the program itself takes from its environment alone.
        versions: of what it reads at its start, by name: another one, and it is restarted.
        prefix: command that runs it elsewhere, such as `apptainer exec IMAGE`; keys are read there.
        inherits: whether it is given all of its supervisor's variables, not those of the system alone.
    """

    name: str
    command: Sequence[str]
    priority: int
    server: str = ""
    start_seconds: int = 1
    stop_seconds: int = 10
    stop_signal: str = "TERM"
    environment: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, Path] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()
    inherits: bool = False

    @property
    def service(self) -> str:
        """The name without the number of a replica."""
        return service_of(self.name)

    @property
    def description(self) -> dict[str, Any]:
        """What `launch` reads; supervisord is told only when it changes, for its own syntax cannot hold every value."""
        keys = [f"{name}={file}" for name, file in self.keys.items()]
        return {
            "command": [*self.prefix, *(WITH_KEYS if keys else ()), *keys, *self.command],
            "path": str(Path([*self.prefix, *self.command][0]).parent),
            "environment": dict(self.environment),
            "inherits": self.inherits,
            "versions": dict(self.versions),
        }

    def files(self, run: RunDir) -> tuple[str, str]:
        """Its part of supervisord.conf, and the text of its description."""
        text = json.dumps(self.description, indent=1)
        values = {
            "NAME": self.name,
            # supervisord reads % as the beginning of a variable of its own.
            "COMMAND": shlex.join([*LAUNCH, str(run.program(self.name))]).replace("%", "%%"),
            "DIGEST": digest([text]),
            "PRIORITY": str(self.priority),
            "START_SECONDS": str(self.start_seconds),
            "STOP_SECONDS": str(self.stop_seconds),
            "STOP_SIGNAL": self.stop_signal,
            "RUN_DIR": str(run.path),
        }
        return fill(TEMPLATE, values), text

    def changed(self, run: RunDir) -> bool:
        """Whether it is another program than when supervisord was last told of it, so that `make up` restarts it."""
        try:
            return self.files(run)[0] not in (run.path / "supervisord.conf").read_text(encoding="utf-8")
        except OSError:
            return True

    def changes(self, run: RunDir) -> list[str]:
        """Names of what is another one than when the program was written down last."""
        try:
            before = json.loads(run.program(self.name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        now = self.description
        names = ["its command"] if before.get("command") != now["command"] else []
        for part in ("environment", "versions"):
            then, own = before.get(part, {}), now[part]
            others = [name for name in then.keys() | own.keys() if then.get(name) != own.get(name)]
            names += (name.removeprefix(IN_IMAGE).removesuffix("_FILE") for name in others)
        return sorted(set(names)) or ["how it is supervised"]


def digest(parts: Iterable[str]) -> str:
    """A short digest that changes when any part does."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def redis(service: str, redis_server: str, run: RunDir, configuration: str) -> Program:
    """The Redis of the cache or of the queue."""
    file = f"{service}.conf"
    shared = (CHART_FILES / "redis" / file).read_text(encoding="utf-8")
    return Program(service, [redis_server, str(run.path / file)], 10, versions={file: digest([configuration, shared])})


def rules(settings: Settings, run: RunDir, environment: Mapping[str, str], versions: Mapping[str, str]) -> Program:
    """The reward server."""
    return Program(
        "rules",
        GUNICORN,
        priority=20,
        server=f"unix:{run.socket('rules')}",
        start_seconds=2,
        stop_seconds=SERVICES["rules"].stop_grace(settings),
        environment=environment,
        versions=versions,
    )


def workers(settings: Settings, environment: Mapping[str, str], versions: Mapping[str, str]) -> list[Program]:
    """The workers of jobs."""
    names = ["worker", *(f"worker-{number}" for number in range(2, settings.number("WORKERS") + 1))]
    return [
        Program(
            name,
            WORKER,
            priority=25,
            start_seconds=2,
            stop_seconds=SERVICES["worker"].stop_grace(settings),
            environment=environment,
            versions=versions,
        )
        for name in names
    ]


def gateway(command: Sequence[str], settings: Settings) -> Program:
    """nginx; it takes up its files anew without a restart, but cannot change to an address that covers its own."""
    stop_seconds = SERVICES["gateway"].stop_grace(settings)
    versions = {"BIND_ADDRESS": settings["BIND_ADDRESS"]}
    return Program("gateway", command, 30, stop_seconds=stop_seconds, stop_signal="QUIT", versions=versions)
