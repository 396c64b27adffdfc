"""The programs of the stack, from the table of services: commands, and what each reads of settings and secrets."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.gateway import config as gateway_config
from services.gateway.tls import TRUST
from services.models.environment import requirements_digest
from services.stack.rundir import CHART_FILES, ROOT, RunDir
from services.stack.secrets import Secrets
from services.stack.service_env import HUB, READ_BY, from_environment
from services.stack.services_table import SERVICES
from services.stack.settings import SECRETS, SETTINGS, USERS_FILES, Settings
from services.up import named_judges
from services.up.native.redis import Redis
from services.up.native.supervisor import WATCH
from services.up.services import kind_of, service_of

WITH_KEYS = ("sh", str(CHART_FILES / "models/with_keys.sh"))
PYTHON_PROGRAMS = {"python": (sys.executable,), "gunicorn": (sys.executable, "-m", "gunicorn")}
"""Programs of the stack's own environment, which need not be on PATH."""
TIMEOUT = "UNHEALTHY_TIMEOUT"
WATCH_ORDER = 40
"""It starts last and stops first."""
IN_IMAGE = "APPTAINERENV_"
"""Before the name of a variable that a program is given in its image."""
SCORING_CODE = (ROOT / "client", ROOT / "verifier", ROOT / "services/rules/rewardstack_rules")
EMBEDDING_CODE = ROOT / "services/embedding"
CONSTRAINTS = ROOT / "constraints.txt"


@dataclass(frozen=True)
class Program:
    """One process that supervisord keeps running.

    Args:
        name: of the service; a second replica's has a number behind it, such as `judge-2`.
        command: that starts it.
        start_order: lower ones start first and stop last.
        stop_grace: seconds from the stop signal until it is killed.
        stop_signal: that starts its graceful stop.
        server: where it listens, as nginx writes it; empty where the gateway does not ask it.
        environment: its variables beside those of the system; no secrets, for they are written into a file.
        keys: by variable, the file of a secret that the program reads from its environment only.
        versions: of what it reads at its start, by name: it is restarted when one changes.
        prefix: command that runs it in an image, such as `apptainer exec IMAGE`; keys are read there.
        inherits: whether it is given all of its supervisor's variables, not only those of the system.
    """

    name: str
    command: Sequence[str]
    start_order: int
    stop_grace: int = 10
    stop_signal: str = "TERM"
    server: str = ""
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
        """What `launch` reads: supervisord's own syntax cannot hold every value."""
        keys = [f"{name}={file}" for name, file in self.keys.items()]
        return {
            "command": [*self.prefix, *(WITH_KEYS if keys else ()), *keys, *self.command],
            "path": str(Path([*self.prefix, *self.command][0]).parent),
            "environment": dict(self.environment),
            "inherits": self.inherits,
            "versions": dict(self.versions),
        }


class Inputs:
    """What programs read: variables, files of secrets, and versions of what a change of restarts them.

    Args:
        values: of every variable that a program may be given.
        hidden: those of them that are secrets.
        secrets: to which the hidden ones are added.
    """

    def __init__(
        self, values: Mapping[str, str], hidden: Mapping[str, str], settings: Settings, secrets: Secrets
    ) -> None:
        keys = named_judges.keys(settings)
        self._judge_keys = {name: secrets.add(named_judges.key_file(name), text) for name, text in keys.items()}
        self._values, self._secrets = values, secrets
        named = SETTINGS["REWARD_FUNCTIONS_ENV"].read(values["REWARD_FUNCTIONS_ENV"])
        self._functions_env = [name for name in named if name not in SECRETS]
        self._hidden = {name: secrets.add(name.lower(), text) for name, text in hidden.items() if text}
        self._users_files = [path for name in USERS_FILES for path in settings.files(name)]
        for routes in settings.files("REWARDSTACK_ROUTES"):
            self._users_files += [routes.parent / name for name in named_judges.templates(routes)]
        self._users_files += map(Path, filter(None, [values[TRUST]]))

    def scoring(self, service: str) -> dict[str, Mapping[str, str]]:
        """Return `environment` and `versions` of the reward server or a worker; secrets as names of files."""
        names = [name for name in (*READ_BY[service], TRUST) if self._values.get(name) and name not in self._hidden]
        own = [name for name in SERVICES[service].secret_files if name in self._hidden]
        environment = {name: self._values[name] for name in names}
        environment |= {f"{name}_FILE": str(self._hidden[name]) for name in own}
        environment |= {f"{name}_FILE": str(file) for name, file in self._judge_keys.items()}
        environment |= from_environment(*self._functions_env)
        code = {folder.name: _code(folder) for folder in SCORING_CODE}
        files = {str(path): _contents([path]) for path in (*self._users_files, CONSTRAINTS)}
        keys = {name: self._secrets.digest(file.name) for name, file in self._judge_keys.items()}
        return {"environment": environment, "versions": {**code, **files, **keys, **self._versions(own)}}

    def model_server(self, service: str) -> tuple[dict[str, str], dict[str, Path], dict[str, str]]:
        """Return variables, files of secrets and versions of the judge or the embedding server."""
        keys = {own: name for own, name in SERVICES[service].secret_variables.items() if name in self._hidden}
        code = {"its code": _code(EMBEDDING_CODE)} if service == "embedding" else {}
        versions = {"its packages": requirements_digest(), **code, **self._versions(keys.values())}
        hub = from_environment(*(name for name in HUB if name not in keys))
        return hub, {own: self._hidden[name] for own, name in keys.items()}, versions

    def _versions(self, secrets: Iterable[str]) -> dict[str, str]:
        return {name: self._secrets.digest(name.lower()) for name in secrets}


def program(name: str, command: Sequence[str], settings: Settings, **fields: Any) -> Program:
    """Return a program of a service as the table describes it.

    Args:
        name: of the service or replica.
        command: that starts it.
        fields: further ones of `Program`; `environment` is added to the table's.
    """
    service = SERVICES[kind_of(name)]
    fields["environment"] = {**service.environment, **fields.get("environment", {})}
    return Program(name, command, service.start_order, service.stop_grace(settings), service.stop_signal, **fields)


def command(service: str, settings: Settings, found: Mapping[str, str], config: Path | None = None) -> list[str]:
    """Return the command of a service without a model, as the table has it.

    Args:
        service: its name.
        found: paths of programs that are not Python's.
        config: its configuration file.
    """
    described = SERVICES[service]
    name, *arguments = described.command
    first = PYTHON_PROGRAMS[name] if name in PYTHON_PROGRAMS else (found[name],)
    return [*first, *(part.format(config=config) for part in arguments), *described.arguments(settings)]


def redis(one: Redis, settings: Settings, found: Mapping[str, str], run: RunDir) -> Program:
    """Return the Redis of the cache or of the queue."""
    file = f"{one.service}.conf"
    versions = {file: digest([one.configuration, (CHART_FILES / "redis" / file).read_text(encoding="utf-8")])}
    return program(one.service, command(one.service, settings, found, run.path / file), settings, versions=versions)


def rules(settings: Settings, run: RunDir, inputs: Inputs) -> Program:
    """Return the reward server, which listens on a socket."""
    server = f"unix:{run.socket('rules')}"
    return program("rules", command("rules", settings, {}), settings, server=server, **inputs.scoring("rules"))


def workers(settings: Settings, inputs: Inputs) -> list[Program]:
    """Return the workers of jobs."""
    names = ["worker", *(f"worker-{number}" for number in range(2, settings.number("WORKERS") + 1))]
    return [program(name, command("worker", settings, {}), settings, **inputs.scoring("worker")) for name in names]


def gateway(nginx: str, settings: Settings, run: RunDir) -> Program:
    """Return nginx; it reloads its files without a restart, but cannot change to an address that covers its own."""
    versions = {"BIND_ADDRESS": settings["BIND_ADDRESS"]}
    return program("gateway", gateway_config.command(nginx, run.path), settings, versions=versions)


def watch(settings: Settings, run: RunDir, discovery: str) -> Program:
    """Return the program that watches the services.

    Args:
        discovery: text of the file that says which model servers of other nodes the gateway asks.
    """
    started = [sys.executable, "-m", "services.up.native.watch", str(run.path)]
    environment = {TIMEOUT: settings[TIMEOUT]}
    return Program(WATCH, started, WATCH_ORDER, environment=environment, versions={"discovery": digest([discovery])})


def digest(parts: Iterable[str]) -> str:
    """Return a short digest that changes when any part does."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _code(folder: Path) -> str:
    return _contents(sorted(folder.rglob("*.py")))


def _contents(files: Iterable[Path]) -> str:
    return digest(part for path in files for part in (str(path), hashlib.sha256(path.read_bytes()).hexdigest()))
