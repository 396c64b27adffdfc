"""Writes the configuration of the services into the run directory, from the templates."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from services.native.rundir import ROOT, RunDir
from services.native.settings import Settings

TEMPLATES = ROOT / "services/native/templates"
GATEWAY = ROOT / "services/gateway"

FILES = {
    "supervisord.conf": TEMPLATES / "supervisord.conf",
    "redis.conf": TEMPLATES / "redis.conf",
    "nginx.conf": GATEWAY / "nginx.conf.template",
    "upstreams.conf": GATEWAY / "upstreams-list.conf.template",
}
"""Name in the run directory, and the template."""

SERVER_CODE = (ROOT / "client/rewardstack", ROOT / "services/rules/rewardstack_rules")

# nginx writes its own variables in lower case.
VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")


def configuration(settings: Settings, run: RunDir, programs: Mapping[str, str]) -> dict[str, str]:
    """The text of each configuration file, by name.

    Args:
        settings: of the stack.
        run: where the files will be.
        programs: paths of `nginx` and `redis-server`.
    """
    root = os.geteuid() == 0
    values = {
        **settings,
        "ROOT": str(ROOT),
        "RUN_DIR": str(run.path),
        "PYTHON": sys.executable,
        "LAUNCH": f"{sys.executable} -m services.native.launch",
        "NGINX": programs["nginx"],
        "REDIS_SERVER": programs["redis-server"],
        # Both give up root's rights unless told otherwise, and could then not read the private directory.
        "USER": "user = root" if root else "",
        "NGINX_USER": "user root;" if root else "",
        "REQUIREPASS": f"requirepass {settings['CACHE_PASSWORD']}" if settings["CACHE_PASSWORD"] else "",
        "LISTEN": f"{settings.gateway_host}:{settings['REWARD_PORT']}",
        "RULES_STOP_SECONDS": str(settings.number("REWARD_GRACEFUL_TIMEOUT") + 5),
        "RULES_SERVERS": f"server unix:{run.rules_socket};",
    }
    return {name: fill(template.read_text(encoding="utf-8"), values) for name, template in FILES.items()}


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put each value in place of its variable, in one pass."""
    return VARIABLE.sub(lambda match: values[match.group(1)], template)


def write(files: Mapping[str, str], run: RunDir) -> None:
    """Write the files, readable by their owner alone."""
    for name, text in files.items():
        path = run.path / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")


def digest(parts: Mapping[str, str]) -> str:
    """A short digest that changes when any part does."""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]


def code_digest(settings: Settings) -> str:
    """A digest of the files that the reward server runs or reads at its start: its code, and the user's."""
    files = [path for package in SERVER_CODE for path in sorted(package.rglob("*.py"))]
    named = [*settings["REWARD_FUNCTIONS"].split(os.pathsep), settings["REWARDSTACK_ROUTES"], settings["DATASET_PATH"]]
    files += [ROOT / name for name in named if name and (ROOT / name).is_file()]
    return digest({str(path): _content_digest(path) for path in files})


def _content_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
