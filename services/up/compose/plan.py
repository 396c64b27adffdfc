"""What `make up` hands to Compose: its files and variables, from the settings and from what the machine has."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from services.judge import model
from services.models import machine
from services.stack import ports
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import SECRETS, Settings
from services.up import model_servers
from services.up.compose import users_files
from services.up.compose.engine import Engine
from services.up.compose.limits import limits
from services.up.model_servers import JUDGE, SERVERS, ModelServer

NAME = "rewardstack"
"""Of the project, unless COMPOSE_PROJECT_NAME says otherwise."""
MONITORING_PORTS = ("PROMETHEUS_PORT", "GRAFANA_PORT")
OWN = {"judge": "STACK_JUDGE_URL", "embedding": "STACK_EMBEDDING_URL"}
"""The settings that say where containers find the stack's own servers."""
KEYS = ("REWARD_SERVER_API_KEYS", "LLM_JUDGE_SERVER_API_KEY", "EMBEDDING_SERVER_API_KEY")


@dataclass(frozen=True)
class Plan:
    """What is to run.

    Args:
        project: its name at the engine.
        files: for Compose, in order.
        environment: variables for Compose.
        urls: where clients find the services, by the client's variable.
        ports: address and port by the name of the setting.
    """

    project: str
    files: Sequence[Path]
    environment: Mapping[str, str]
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]

    def arguments(self) -> list[str]:
        """The options of `docker compose` before its command."""
        files = [part for file in self.files for part in ("--file", str(file))]
        return ["--project-directory", str(ROOT), *files]


def project_name() -> str:
    """Under which the engine keeps the stack."""
    return os.environ.get("COMPOSE_PROJECT_NAME") or NAME


def say_what_is_unused(engine: Engine) -> None:
    """Say in a line that there are GPUs which containers cannot be given."""
    if machine.gpus() and not engine.gpus:
        say("==> no GPUs for containers: Docker has no nvidia runtime (NVIDIA Container Toolkit); processors are used")


def describe(settings: Settings, run: RunDir, engine: Engine, chosen: Sequence[ModelServer]) -> Plan:
    """What is to run.

    Args:
        settings: of the stack.
        run: its directory.
        engine: that runs it.
        chosen: model servers.

    Raises:
        StackError: a URL names what containers do not reach, a file that a setting names is not there, or the GPUs are
            too few.
    """
    urls = {"REWARD_SERVER_URL": settings.url()}
    urls |= {server.url: address for server in SERVERS if (address := model_servers.url(server, settings, chosen))}
    environment = {
        **settings,
        "COMPOSE_PROFILES": ",".join(server.name for server in chosen),
        **{server.url: _elsewhere(server, settings, chosen) for server in SERVERS},
        **{OWN[server.name]: settings[OWN[server.name]] if server in chosen else "" for server in SERVERS},
        **users_files.mounts(settings).settings,
        **limits(settings),
        "RUN_DIR": str(run.path),
        # Containers have these as files.
        **dict.fromkeys(SECRETS, ""),
    }
    gpus = machine.gpus() if engine.gpus else []
    if JUDGE in chosen and settings["JUDGE_GPUS"] == "all":
        machine.shares(gpus, settings.number("JUDGE_REPLICAS"), settings.number("JUDGE_TENSOR_PARALLEL_SIZE"))
    if gpus and not settings["JUDGE_MODEL"] and model.default(gpus) != model.LARGE:
        environment["JUDGE_MODEL"] = settings["JUDGE_CPU_MODEL"]
    files = [ROOT / name for name in _files(settings, bool(gpus))]
    return Plan(project_name(), files, environment, urls, _ports(settings))


def published_cache(settings: Settings) -> bool:
    """Whether clients outside may use the cache."""
    return bool(settings["CACHE_PASSWORD"])


def monitored(settings: Settings) -> bool:
    """Whether Prometheus and Grafana run too."""
    return settings["MONITORING"] == "on"


def _files(settings: Settings, gpus: bool) -> list[str]:
    wanted = {
        "compose.yaml": True,
        "compose.gpu.yaml": gpus,
        "compose.keys.yaml": "HF_TOKEN" in os.environ or any(settings[key] for key in KEYS),
        "compose.cache.yaml": published_cache(settings),
        "compose.monitoring.yaml": monitored(settings),
        "compose.override.yaml": (ROOT / "compose.override.yaml").is_file(),
    }
    return [name for name, needed in wanted.items() if needed]


def _elsewhere(server: ModelServer, settings: Settings, chosen: Sequence[ModelServer]) -> str:
    """Where containers find a model server that is not the stack's own; empty where there is none.

    Raises:
        StackError: it is on this machine's loopback.
    """
    if server in chosen or not model_servers.elsewhere(server, settings):
        return ""
    for url in settings[server.url].split(","):
        if _is_loopback(urlsplit(url.strip()).hostname or ""):
            raise StackError(
                f"{server.url}: {url.strip()} is this machine's loopback, which containers do not reach",
                "name an address of this machine that they reach, or STACK=native",
            )
    return settings[server.url]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ports(settings: Settings) -> dict[str, tuple[str, int]]:
    names = ["REWARD_PORT", *(server.port for server in SERVERS)]
    if published_cache(settings):
        names.append("CACHE_PORT")
    monitoring = MONITORING_PORTS if monitored(settings) else ()
    return {
        **ports.published(settings, names),
        **{name: (ports.LOOPBACK, settings.number(name)) for name in monitoring},
    }
