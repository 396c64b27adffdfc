"""The compose files as Compose reads them, with the settings of `.env` filled in; needs no engine."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from services.stack.rundir import ROOT
from services.stack.settings import SETTINGS

FILES = (
    *("compose.yaml", "compose.gpu.yaml", "compose.keys.yaml", "compose.cache.yaml", "compose.tls.yaml"),
    "compose.monitoring.yaml",
)
COMMON = "compose.common.yaml"
"""What the services of the others extend."""


def config(*files: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """What `docker compose config` says of some files, with settings that beat `.env`."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    chosen = [part for file in files or FILES[:1] for part in ("--file", file)]
    command = ["docker", "compose", *chosen, "config", "--format", "json"]
    return subprocess.run(command, cwd=ROOT, env={**kept, **settings}, capture_output=True, text=True, check=False)


def services(*files: str, **settings: str) -> dict[str, Any]:
    """The services of some files by name."""
    done = config(*files, **settings)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found
