"""The compose file that `make up` writes: the user's files, named judges, and what Compose does not see by itself.

Compose makes a container anew when its configuration has changed, but does not see that a mounted file has: a label
says so. And a container that ends before it was ever well stays ended, so that `docker compose up --wait` fails at once
and its log stays; those that became well are started again for ever (`Project.keep_up`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from services.stack.rundir import RunDir
from services.up.compose import secrets
from services.up.compose.users_files import READERS, Mounts

LABEL = "rewardstack.files"
SKIPPED = "__pycache__"


def write(
    run: RunDir,
    services: Mapping[str, Mapping[str, Any]],
    mounted: Mounts,
    further: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Path:
    """Write it; returns its path.

    Args:
        run: directory of the stack; the secrets are there.
        services: as Compose reads them from the other files.
        mounted: the user's files.
        further: services that the other files lack, or what they lack of one.
    """
    users = [
        {"type": "bind", "source": str(source), "target": target, "read_only": True}
        for target, source in mounted.files.items()
    ]
    written = {}
    for name, service in services.items():
        own, more = users if name in READERS else [], further.get(name, {})
        binds = [mount["source"] for mount in (*service.get("volumes", ()), *own) if mount["type"] == "bind"]
        keys = [secret["source"] for part in (service, more) for secret in part.get("secrets", ())]
        versions = (_version(secrets.folder(run) / key) for key in dict.fromkeys(keys))
        label = _digest([*(_content(Path(path)) for path in binds), *versions])
        labels, volumes = {**more.get("labels", {}), LABEL: label}, [*more.get("volumes", ()), *own]
        written[name] = {**more, "restart": "no", "labels": labels, "volumes": volumes}
    file = run.path / "compose.override.json"
    # Compose reads $ as the beginning of a variable.
    text = json.dumps({"services": written, "secrets": _secrets(run, further)}, indent=1)
    file.write_text(text.replace("$", "$$"), encoding="utf-8")
    return file


def _secrets(run: RunDir, further: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The files of the secrets that are named there."""
    names = {secret["source"] for more in further.values() for secret in more.get("secrets", ())}
    return {name: {"file": str(secrets.folder(run) / name)} for name in sorted(names)}


def _content(path: Path) -> str:
    """A digest of a file, or of all files of a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return _digest(
        f"{file} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in files
        if file.is_file() and SKIPPED not in file.parts
    )


def _version(secret: Path) -> str:
    """When it was written: everyone who may ask the engine sees labels, so nothing of its text goes there."""
    return str(secret.stat().st_mtime_ns)


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
