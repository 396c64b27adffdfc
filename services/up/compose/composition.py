"""What `make up` hands to Compose: its files and variables, from the settings and from what the machine has."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from services.gateway import config as gateway
from services.judge import model
from services.models import machine
from services.models.machine import Gpu
from services.stack import ports
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import KEYS, SECRETS, Settings
from services.up import model_servers
from services.up.compose import named_judges, users_files
from services.up.compose.engine import Engine
from services.up.compose.limits import limits
from services.up.compose.project import Project, steered
from services.up.model_servers import JUDGE, SERVERS, ModelServer
from services.up.named_judges import key_file, keys

OWN = {"judge": "STACK_JUDGE_URL", "embedding": "STACK_EMBEDDING_URL"}
"""The settings that say where containers find the stack's own servers."""
SANDBOX_URL = "http://sandbox:6000"
"""Where containers find what runs programs."""


@dataclass(frozen=True)
class Composition:
    """What Compose is handed.

    Args:
        project: of the containers.
        files: in order.
        environment: variables for them.
        urls: where clients find the services, by the client's variable.
        ports: address and port by the name of the setting.
        configured: the services by name, as Compose reads them from the files, and those of named judges.
        chosen: model servers.
        gpus: those of each judge's container.
        gateway: variables of the gateway for keys and named judges.
        keys: variables of the keys of judges elsewhere.
    """

    project: Project
    files: Sequence[Path]
    environment: Mapping[str, str]
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    configured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    chosen: Sequence[ModelServer] = ()
    gpus: Mapping[str, str] = field(default_factory=dict)
    gateway: Mapping[str, str] = field(default_factory=dict)
    keys: Sequence[str] = ()

    @property
    def services(self) -> list[str]:
        """The names of the services."""
        return sorted(self.configured)

    @property
    def further(self) -> dict[str, Mapping[str, Any]]:
        """What none of the files has: services of named judges, and what gateway and reward server are told of them."""
        judges = (server.name for server in model_servers.judges(self.chosen) if server != JUDGE)
        whoever_scores = {
            "environment": {f"{name}_FILE": f"/run/secrets/{key_file(name)}" for name in self.keys},
            "secrets": [{"source": key_file(name)} for name in self.keys],
        }
        return {
            "gateway": {"environment": self.gateway},
            **dict.fromkeys(users_files.READERS, whoever_scores),
            **{name: self.configured[name] for name in judges},
        }

    def act(self, *arguments: str) -> bool:
        """Run a command of `docker compose` on it in view of the user; returns whether it succeeded."""
        return self.project.act(*self._files(), *arguments, environment=self.environment)

    def read(self) -> Composition:
        """With the services as Compose reads them, and those of named judges, which are made from the default one's.

        Raises:
            StackError: Compose cannot read them; says why.
        """
        done = subprocess.run(
            self.project.command(*self._files(), "config", "--format", "json"),
            cwd=ROOT,
            env=steered(self.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StackError(f"docker compose config: {done.stderr.strip()}", "see docs/settings.md")
        # Compose writes $ twice.
        found = json.loads(done.stdout.replace("$$", "$"))["services"]
        named = named_judges.services(self.chosen, found.get(JUDGE.name, {}), self.gpus)
        return replace(self, configured={**found, **named})

    def _files(self) -> list[str]:
        files = [part for file in self.files for part in ("--file", str(file))]
        return ["--project-directory", str(ROOT), *files]


def unused_gpus(engine: Engine) -> str:
    """Why GPUs of this machine are not used; empty where they are, or there are none."""
    without = bool(machine.gpus()) and not engine.gpus
    return "Docker has no nvidia runtime (NVIDIA Container Toolkit); processors are used" if without else ""


def describe(settings: Settings, run: RunDir, project: Project, chosen: Sequence[ModelServer]) -> Composition:
    """What Compose is handed; nothing is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        project: of the containers.
        chosen: model servers.

    Raises:
        StackError: a URL names what containers do not reach, a file that a setting names is not there, or the GPUs are
            too few.
    """
    urls = model_servers.urls(settings, chosen)
    environment = {
        **settings,
        "COMPOSE_PROFILES": ",".join([*(server.name for server in chosen), *(["code"] if runs_code(settings) else [])]),
        "STACK_CODE_SANDBOX_URL": SANDBOX_URL if runs_code(settings) else "",
        **{server.url: _elsewhere(server, settings, chosen) for server in SERVERS},
        **{OWN[server.name]: settings[OWN[server.name]] if server in chosen else "" for server in SERVERS},
        **users_files.mounts(settings).settings,
        **limits(settings),
        "RUN_DIR": str(run.path),
        # Containers have these as files.
        **dict.fromkeys(SECRETS, ""),
    }
    gpus = usable_gpus(project.engine)
    handed_out = named_judges.gpus_of(settings, chosen, gpus)
    environment["JUDGE_MODEL"] = judge_model(settings, gpus)
    environment["JUDGE_GPUS"] = handed_out.get(JUDGE.name, settings["JUDGE_GPUS"])
    return Composition(
        project,
        [ROOT / name for name in _files(settings, bool(gpus))],
        environment,
        urls,
        ports.composed(settings),
        chosen=chosen,
        gpus=handed_out,
        gateway={**gateway.auth_request_uris(settings), **named_judges.variables(chosen, settings)},
        keys=[*keys(settings)],
    )


def usable_gpus(engine: Engine) -> list[Gpu]:
    """The GPUs of this machine that containers can be given."""
    return machine.gpus() if engine.gpus else []


def judge_model(settings: Settings, gpus: list[Gpu]) -> str:
    """The model of the default judge: the one that is named, or one that these GPUs can hold."""
    by_default = "JUDGE_GPU_MODEL" if gpus and model.default(gpus) == model.LARGE else "JUDGE_CPU_MODEL"
    return settings["JUDGE_MODEL"] or settings[by_default]


def published_cache(settings: Settings) -> bool:
    """Whether clients outside may use the cache."""
    return bool(settings["CACHE_PORT"] and settings["CACHE_PASSWORD"])


def monitored(settings: Settings) -> bool:
    """Whether Prometheus and Grafana run too."""
    return settings["MONITORING"] == "on"


def runs_code(settings: Settings) -> bool:
    """Whether the stack runs programs, in a container of its own."""
    return settings["CODE"] == "on" and not os.environ.get("CODE_SANDBOX_URL")


def _files(settings: Settings, gpus: bool) -> list[str]:
    wanted = {
        "compose.yaml": True,
        "compose.gpu.yaml": gpus,
        "compose.keys.yaml": "HF_TOKEN" in os.environ or any(settings[key] for key in KEYS),
        "compose.cache.yaml": published_cache(settings),
        "compose.tls.yaml": settings.tls,
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
