"""Describe the programs of the stack from the table of services, and render supervisord.conf."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.gateway import config as gateway_config
from services.gateway.tls import TRUST, trusted_ca_file
from services.models.environment import requirements_digest
from services.stack.processes import from_environment
from services.stack.rundir import CHART_FILES, ROOT, RunDir
from services.stack.secrets import Secrets
from services.stack.services_table import SERVICES
from services.stack.settings import SECRETS, SETTINGS, USERS_FILES, Settings
from services.stack.settings_table import read_by
from services.up import model_servers, named_judges
from services.up.model_servers import REWARD_MODEL, SERVERS
from services.up.native.supervisor import CONFIGURATION, WATCH, sections
from services.up.services import kind_of, service_of

REDIS_OPTIONS = CHART_FILES / "redis"
SERVER = "server"
"""Redis user with all rights on the cache, for the stack's own services."""
LAUNCH = (sys.executable, "-m", "services.up.native.launch")
START_SECONDS = 2
"""Seconds after which a running process counts as started."""
START_RETRIES = 30
"""Number of restarts, with growing delays, before supervisord gives up (FATAL). `watch` then starts the program."""
FOREVER = 1_000_000
WITH_KEYS = ("sh", str(CHART_FILES / "models/with_keys.sh"))
PYTHON_PROGRAMS = {"python": (sys.executable,), "gunicorn": (sys.executable, "-m", "gunicorn")}
"""Commands of programs in the stack's virtual environment, which may not be on PATH."""
TIMEOUT = "UNHEALTHY_TIMEOUT"
WATCH_ORDER = 40
"""Start order of `watch`, so that it starts last and stops first."""
IN_IMAGE = "APPTAINERENV_"
"""Apptainer passes environment variables with this prefix to the container, and removes the prefix."""
SCORING_CODE = (ROOT / "client", ROOT / "verifier", ROOT / "services/rules/rewardstack_rules")
EMBEDDING_CODE = ROOT / "services/embedding"
CONSTRAINTS = ROOT / "constraints.txt"
HUB_VARIABLES = (
    *("HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN"),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"),
)
"""Environment variables that model servers inherit to reach a model hub."""
SETTINGS_BY_SERVICE = {
    # A local reward server listens on a socket; REWARD_PORT is a port of the gateway.
    "rules": tuple(name for name in read_by("rules") if name != "REWARD_PORT"),
    "worker": tuple(name for name in read_by("worker") if name != "WORKER_METRICS_PORT"),
}
"""Settings that the reward server and its workers read, by service."""


@dataclass(frozen=True)
class Program:
    """A process that supervisord keeps running.

    Args:
        name: name of the service, with a number for further replicas, such as `judge-2`.
        command: command that starts the program.
        start_order: programs with lower numbers start earlier and stop later.
        stop_grace: seconds from the stop signal until the program is killed.
        stop_signal: signal that starts a graceful stop.
        server: address of the program in nginx syntax; empty if it is not behind the gateway.
        environment: environment variables. They must not hold secrets, because they are written to a file.
        keys: files of secrets, by environment variable. `with_keys.sh` sets the variables to the files' contents, for
            programs that cannot read secrets from files.
        versions: digests of the files and secrets that the program reads at startup, by name. `make up` restarts the
            program if one of them has changed.
        prefix: command that runs the program in an image, such as `apptainer exec IMAGE`.
        inherits: whether the program gets all variables of supervisord, not only the system variables.
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
        """Name without the number of the replica."""
        return service_of(self.name)

    @property
    def description(self) -> dict[str, Any]:
        """Description that `launch` reads from a file, because supervisord.conf cannot express every value."""
        keys = [f"{name}={file}" for name, file in self.keys.items()]
        return {
            "command": [*self.prefix, *(WITH_KEYS if keys else ()), *keys, *self.command],
            "path": str(Path([*self.prefix, *self.command][0]).parent),
            "environment": dict(self.environment),
            "inherits": self.inherits,
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        """Return the text of the file with the description."""
        return json.dumps(self.description, indent=1)

    def section(self, run: RunDir) -> dict[str, str]:
        """Return the program's section of supervisord.conf."""
        return {
            # Escape %, which supervisord would expand.
            "command": shlex.join([*LAUNCH, str(run.program(self.name))]).replace("%", "%%"),
            # supervisord does not read the description file. The digest makes supervisord notice changes of the file.
            "environment": f'DIGEST="{digest([self.to_json()])}"',
            "priority": str(self.start_order),
            "startsecs": str(START_SECONDS),
            "startretries": str(FOREVER if self.name == WATCH else START_RETRIES),
            "autorestart": "true",
            "stopsignal": self.stop_signal,
            "stopwaitsecs": str(self.stop_grace),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(run.log(self.name)),
            "stdout_logfile_maxbytes": "0",
        }

    def has_changed(self, run: RunDir) -> bool:
        """Return whether the program differs from the current supervisord.conf. `make up` restarts changed programs."""
        return sections(run).get(f"program:{self.name}") != self.section(run)

    def changes(self, run: RunDir) -> str:
        """Return what has changed since the description file was last written, as text such as `CODE, its command`."""
        try:
            before = json.loads(run.program(self.name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        now = self.description
        names = {"its command"} if before.get("command") != now["command"] else set()
        for part in ("environment", "versions"):
            old, new = before.get(part, {}), now[part]
            changed = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
            names |= {name.removeprefix(IN_IMAGE).removesuffix("_FILE") for name in changed}
        return ", ".join(sorted(names)) or "its supervisord options"


def files(programs: Sequence[Program], run: RunDir) -> dict[str, str]:
    """Return the text of supervisord.conf and of each program's description, by file name."""
    written: dict[str, dict[str, str]] = {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "identifier": "rewardstack",
            "directory": str(ROOT),
            "logfile": str(run.log("supervisord")),
            # supervisord must not rotate logs, because it exits if the disk is full while it closes a file. `watch`
            # rotates them.
            "logfile_maxbytes": "0",
            "pidfile": str(run.path / "supervisord.pid"),
            "childlogdir": str(run.logs),
            "umask": "077",
            # If root starts supervisord without this option, supervisord logs a critical message.
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "unix_http_server": {"file": str(run.supervisor_socket), "chmod": "0600"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        **{f"program:{program.name}": program.section(run) for program in programs},
    }
    text = "; Written by `make up`: changes here are lost.\n"
    for name, values in written.items():
        text += "".join([f"\n[{name}]\n", *(f"{key} = {value}\n" for key, value in values.items())])
    return {CONFIGURATION: text, **{f"programs/{program.name}.json": program.to_json() for program in programs}}


class Inputs:
    """Inputs of programs: variables, files with secrets, and digests (versions) whose change restarts a program.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        secrets: store to which the secrets are added.
        urls: URLs of the services, by the client's environment variable.
        redis_servers: cache and queue.
    """

    def __init__(
        self, settings: Settings, run: RunDir, secrets: Secrets, urls: Mapping[str, str], redis_servers: Sequence[Redis]
    ) -> None:
        self._secrets = secrets
        self._values = {
            **settings,
            **{server.url_setting: urls.get(server.url_setting, "") for server in SERVERS},
            # `urls` has the URL of an external judge or embedding server, but not of an external reward model.
            REWARD_MODEL.url_setting: urls.get(REWARD_MODEL.url_setting, settings[REWARD_MODEL.url_setting]),
            "REWARD_SOCKET": str(run.socket("rules")),
            TRUST: trusted_ca_file(settings),
        }
        hidden = {f"REWARD_{server.service.upper()}_URL": server.url for server in redis_servers}
        hidden |= {**model_servers.keys(settings), "HF_TOKEN": os.environ.get("HF_TOKEN", "")}
        keys = named_judges.keys(settings)
        self._judge_keys = {name: secrets.add(named_judges.key_file(name), text) for name, text in keys.items()}
        functions_env = SETTINGS["REWARD_FUNCTIONS_ENV"].read(settings["REWARD_FUNCTIONS_ENV"])
        self._functions_env = [name for name in functions_env if name not in SECRETS]
        self._hidden = {name: secrets.add(name.lower(), text) for name, text in hidden.items() if text}
        self._users_files = [path for name in USERS_FILES for path in settings.files(name)]
        for routes in settings.files("REWARDSTACK_ROUTES"):
            self._users_files += [routes.parent / name for name in named_judges.templates(routes)]
        self._users_files += map(Path, filter(None, [self._values[TRUST]]))

    def scoring(self, service: str) -> dict[str, Mapping[str, str]]:
        """Return `environment` and `versions` of the reward server or a worker.

        The environment has the paths of the files with the stack's secrets (`NAME_FILE`), not the secrets.
        """
        names = [
            name
            for name in (*SETTINGS_BY_SERVICE[service], TRUST)
            if self._values.get(name) and name not in self._hidden
        ]
        secrets = [name for name in SERVICES[service].secret_files if name in self._hidden]
        environment = {name: self._values[name] for name in names}
        environment |= {f"{name}_FILE": str(self._hidden[name]) for name in secrets}
        environment |= {f"{name}_FILE": str(file) for name, file in self._judge_keys.items()}
        environment |= from_environment(*self._functions_env)
        code = {folder.name: _contents(folder) for folder in SCORING_CODE}
        files = {str(path): _contents(path) for path in (*self._users_files, CONSTRAINTS)}
        keys = {name: self._secrets.digest(file.name) for name, file in self._judge_keys.items()}
        return {"environment": environment, "versions": {**code, **files, **keys, **self._versions(secrets)}}

    def model_server(self, service: str) -> tuple[dict[str, str], dict[str, Path], dict[str, str]]:
        """Return variables, secret files and versions of a model server."""
        keys = {own: name for own, name in SERVICES[service].secret_variables.items() if name in self._hidden}
        code = {"its code": _contents(EMBEDDING_CODE)} if service == "embedding" else {}
        versions = {"its packages": requirements_digest(), **code, **self._versions(keys.values())}
        hub = from_environment(*(name for name in HUB_VARIABLES if name not in keys))
        return hub, {own: self._hidden[name] for own, name in keys.items()}, versions

    def _versions(self, secrets: Iterable[str]) -> dict[str, str]:
        return {name: self._secrets.digest(name.lower()) for name in secrets}


def program(name: str, command: Sequence[str], settings: Settings, **fields: Any) -> Program:
    """Return the program of a service, with fields from the table of services.

    Args:
        name: name of the service or replica.
        command: command that starts the program.
        settings: settings of the stack.
        fields: further fields of `Program`; `environment` is added to the variables in the table.
    """
    service = SERVICES[kind_of(name)]
    fields["environment"] = {**service.environment, **fields.get("environment", {})}
    return Program(name, command, service.start_order, service.stop_grace(settings), service.stop_signal, **fields)


def command(service: str, settings: Settings, found: Mapping[str, str], config: Path | None = None) -> list[str]:
    """Return the command of a service from the table of services. The service must not be a model server.

    Args:
        service: name of the service.
        settings: settings of the stack.
        found: paths of nginx and redis-server.
        config: path of the service's configuration file.
    """
    row = SERVICES[service]
    name, *arguments = row.command
    first = PYTHON_PROGRAMS[name] if name in PYTHON_PROGRAMS else (found[name],)
    return [*first, *(part.format(config=config) for part in arguments), *row.arguments(settings)]


@dataclass(frozen=True)
class Redis:
    """The Redis server of cache or queue, which listens on a Unix socket and optionally on a port.

    Args:
        service: `cache` or `queue`.
        configuration: text of the configuration file, which includes the file that all deployments share.
        url: URL for the stack's own services, over the socket.
        published: URL for clients, in shell syntax: the shell replaces `$(cat FILE)` by the password. If the server has
            no port, this is the URL of the socket.
    """

    service: str
    configuration: str
    url: str
    published: str

    def program(self, settings: Settings, found: Mapping[str, str], run: RunDir) -> Program:
        """Return the program of the server."""
        file = f"{self.service}.conf"
        versions = {file: digest([self.configuration, (REDIS_OPTIONS / file).read_text(encoding="utf-8")])}
        started = command(self.service, settings, found, run.path / file)
        return program(self.service, started, settings, versions=versions)


def redis(service: str, settings: Settings, run: RunDir, secrets: Secrets) -> Redis:
    """Return the Redis server of `cache` or `queue`, and add its passwords to the secrets."""
    socket, port = run.socket(service), settings[f"{service.upper()}_PORT"]
    url = published = f"unix://{socket}"
    access: list[str] = []
    if port:
        password = settings.get(f"{service.upper()}_PASSWORD") or secrets.generate(f"{service}_password")
        file = secrets.add(f"{service}_password", password)
        published = f"redis://:$(cat {file})@{settings.host}:{port}/0"
        url, access = f"unix://:{password}@{socket}", [f"bind {_redis_addresses(settings)}", f"requirepass {password}"]
    if port and service == "cache":
        own_password = secrets.generate("cache_server_password")
        secrets.add("cache_server_password", own_password)
        # Trainers connect as the default user, which has only the rights that the client needs.
        rights = (REDIS_OPTIONS / "trainers.acl").read_text(encoding="ascii").strip()
        url = f"unix://{SERVER}:{own_password}@{socket}"
        access[1:] = [f"user default on >{password} {rights}", f"user {SERVER} on >{own_password} ~* &* +@all"]
    lines = [
        f"include {REDIS_OPTIONS / service}.conf",
        f"unixsocket {socket}",
        "unixsocketperm 700",
        f"port {port or 0}",
        *access,
        f"dir {run.queue if service == 'queue' else run.path}",
        "daemonize no",
        'logfile ""',
    ]
    return Redis(service, "\n".join(lines) + "\n", url, published)


def _redis_addresses(settings: Settings) -> str:
    """Return the addresses to listen on.

    BIND_ADDRESS is always included. 127.0.0.1 is added, unless BIND_ADDRESS is a loopback address or 0.0.0.0.
    """
    address = ipaddress.ip_address(settings["BIND_ADDRESS"])
    loopback = "" if address.is_loopback or str(address) == "0.0.0.0" else "127.0.0.1 "
    return f"{loopback}{address}"


def rules(settings: Settings, run: RunDir, inputs: Inputs) -> Program:
    """Return the program of the reward server, which listens on a Unix socket."""
    server = f"unix:{run.socket('rules')}"
    return program("rules", command("rules", settings, {}), settings, server=server, **inputs.scoring("rules"))


def workers(settings: Settings, inputs: Inputs) -> list[Program]:
    """Return the programs of the workers."""
    names = ["worker", *(f"worker-{number}" for number in range(2, settings.number("WORKERS") + 1))]
    return [program(name, command("worker", settings, {}), settings, **inputs.scoring("worker")) for name in names]


def gateway(nginx: str, settings: Settings, run: RunDir) -> Program:
    """Return the program of nginx.

    A reload of nginx applies most configuration changes. After a change of BIND_ADDRESS, `make up` restarts nginx.
    """
    versions = {"BIND_ADDRESS": settings["BIND_ADDRESS"]}
    return program("gateway", gateway_config.command(nginx, run.path), settings, versions=versions)


def watch(settings: Settings, run: RunDir, upstreams: Sequence[Mapping[str, Any]] = ()) -> Program:
    """Return the program that watches the services.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        upstreams: arguments of `watch.Upstream` except `run`, for each service with replicas on other nodes.
    """
    started = [sys.executable, "-m", "services.up.native.watch", str(run.path)]
    environment = {TIMEOUT: settings[TIMEOUT], "discovery": json.dumps(upstreams)}
    return Program(WATCH, started, WATCH_ORDER, environment=environment)


def digest(parts: Iterable[str]) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _contents(path: Path) -> str:
    """Return a digest of a file, or of the Python files in a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return digest(part for path in files for part in (str(path), hashlib.sha256(path.read_bytes()).hexdigest()))
