"""The configuration of the services in the run directory, and digests of it and of the code that they run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from services.gateway import config as gateway
from services.models.environment import requirements_digest
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import Settings
from services.stack.template import fill
from services.up.native import programs
from services.up.native.programs import Program

TEMPLATES = ROOT / "services/up/native/templates"
CLIENT = ROOT / "client"
PORTS = {"rules": "REWARD_PORT", "judge": "JUDGE_PORT", "embedding": "EMBEDDING_PORT"}
"""The setting of a service's port at the gateway."""


def configuration(
    settings: Settings, run: RunDir, found: Mapping[str, str], model_servers: Sequence[Program] = ()
) -> dict[str, str]:
    """The text of each configuration file, by name.

    Args:
        settings: of the stack.
        run: where the files will be.
        found: paths of `nginx` and `redis-server`.
        model_servers: the judge's and the embedding server's programs.
    """
    rules = programs.rules(settings, run)
    started = [
        programs.redis("cache", found["redis-server"], run),
        programs.redis("queue", found["redis-server"], run),
        rules,
        *programs.workers(settings),
        *model_servers,
        programs.gateway(gateway.command(found["nginx"], run.path)),
    ]
    values = {
        **settings,
        "ROOT": str(ROOT),
        "RUN_DIR": str(run.path),
        # supervisord gives up root's rights unless told otherwise, and could then not read the private directory.
        "USER": "user = root" if os.geteuid() == 0 else "",
        "CACHE_ADDRESSES": settings.cache_addresses,
        "REQUIREPASS": f"requirepass {settings['CACHE_PASSWORD']}" if settings["CACHE_PASSWORD"] else "",
    }
    supervisord = fill(TEMPLATES / "supervisord.conf", values)
    listen = {name: settings.listen(port) for name, port in PORTS.items()}
    return {
        "supervisord.conf": supervisord + "".join(program.section(run) for program in started),
        **{name: fill(TEMPLATES / name, values) for name in ("cache.conf", "queue.conf")},
        **gateway.files(_servers([rules, *model_servers]), settings, listen),
    }


def _servers(started: Sequence[Program]) -> dict[str, list[str]]:
    """Where the programs of each service listen."""
    servers: dict[str, list[str]] = {}
    for program in started:
        servers.setdefault(program.service, []).append(program.server)
    return servers


def digest(parts: Mapping[str, str]) -> str:
    """A short digest that changes when any part does."""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]


def code_digests(settings: Settings) -> dict[str, str]:
    """By service, a digest of what it runs or reads at its start: its code, its packages and the user's files."""
    named = [*settings["REWARD_FUNCTIONS"].split(os.pathsep), settings["REWARDSTACK_ROUTES"], settings["DATASET_PATH"]]
    users = [ROOT / name for name in named if name and (ROOT / name).is_file()]
    packages = {"requirements": requirements_digest()}
    scoring = digest(_contents([*_modules(CLIENT), *_modules(ROOT / "services/rules/rewardstack_rules"), *users]))
    return {
        "rules": scoring,
        "worker": scoring,
        "judge": digest(packages),
        "embedding": digest({**packages, **_contents(_modules(ROOT / "services/embedding"))}),
    }


def _modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def _contents(files: Sequence[Path]) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
