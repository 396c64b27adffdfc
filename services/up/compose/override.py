"""The compose file that `make up` writes: the user's files, and a label that changes when what a container reads does.

Compose makes a container anew when its configuration has changed. It does not see that a mounted file has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from services.stack.rundir import RunDir
from services.up.compose import secrets
from services.up.compose.users_files import READERS, Mounts

LABEL = "rewardstack.files"


def write(run: RunDir, services: Mapping[str, Mapping[str, Any]], mounted: Mounts) -> Path:
    """Write it; returns its path.

    Args:
        run: directory of the stack; the secrets are there.
        services: as Compose reads them from the other files.
        mounted: the user's files.
    """
    volumes = [
        {"type": "bind", "source": str(source), "target": target, "read_only": True}
        for target, source in mounted.files.items()
    ]
    written = {}
    for name, service in services.items():
        own = mounted.files.values() if name in READERS else ()
        named = [secret["source"] for secret in service.get("secrets") or ()]
        label = _digest([*(_content(file) for file in own), *(_version(secrets.folder(run) / name) for name in named)])
        written[name] = {"labels": {LABEL: label}, "volumes": volumes if name in READERS else []}
    file = run.path / "compose.override.json"
    # Compose reads $ as the beginning of a variable.
    file.write_text(json.dumps({"services": written}, indent=1).replace("$", "$$"), encoding="utf-8")
    return file


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _version(secret: Path) -> str:
    """When it was written: everyone who may ask the engine sees labels, so nothing of its text goes there."""
    return str(secret.stat().st_mtime_ns)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
