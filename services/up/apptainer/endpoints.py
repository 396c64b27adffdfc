"""The file that says where the stack is: what trainers follow, with a heartbeat.

The native stack's `watch` writes it again every few seconds, so that readers on other nodes notice a stack that was
killed.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from services.stack.errors import StackError
from services.stack.rundir import RunDir
from services.up.native import health
from services.up.services import remedy

VERSION = 1
NAME = re.compile("[A-Z_]+")


def publish(run: RunDir, file: Path, servers: Mapping[str, str], trust: str = "") -> None:
    """Say where the servers are, from now on until `withdraw`.

    Args:
        run: directory of the stack.
        file: that trainers read.
        servers: addresses and keys, by the client's variables.
        trust: file of certificates that clients need; empty where they need none.

    Raises:
        StackError: somebody else answers there.
        OSError: a file cannot be written.
    """
    if problem := taken(run):
        raise StackError(problem, remedy("gateway", problem))
    if (before := published(run)) and before["file"] != str(file):
        withdraw(run)
    _replace(run.published, json.dumps({"file": str(file), "servers": dict(servers), "trust": trust}))
    beat(run)


def beat(run: RunDir) -> str:
    """Write the file anew, with the time; does nothing where the servers are not published.

    Where somebody else has a port of the gateway the file goes, for who reads it would send the keys there; it comes
    back with the port.

    Returns:
        Why it is withheld; empty where it is not.

    Raises:
        OSError: it cannot be written or removed.
    """
    said = published(run)
    problem = taken(run) if said else ""
    if said and problem:
        _unlink(said)
    elif said:
        told = {"version": VERSION, "written": time.time(), "servers": said["servers"]}
        _replace(Path(said["file"]), json.dumps(told, indent=1) + "\n")
    return problem


def withdraw(run: RunDir) -> None:
    """Remove the file, unless another stack has written it since; does nothing where there is none.

    Raises:
        OSError: it cannot be removed.
    """
    if said := published(run):
        # First, so that no heartbeat writes the file once more.
        run.published.unlink(missing_ok=True)
        _unlink(said)


def published(run: RunDir) -> dict[str, Any] | None:
    """What `publish` was told; None where nothing is published."""
    try:
        return dict(json.loads(run.published.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def taken(run: RunDir) -> str:
    """Who answers at a port of the gateway in its place; empty where nobody does."""
    running = run.recall()
    return health.port_conflict("gateway", run, running) if running else ""


def _unlink(said: Mapping[str, Any]) -> None:
    """Remove the file, unless another stack has written it since."""
    file = Path(said["file"])
    with suppress(FileNotFoundError, ValueError):
        if json.loads(file.read_text(encoding="utf-8"))["servers"] == said["servers"]:
            file.unlink()


def _replace(file: Path, text: str) -> None:
    """Write a file that only its owner reads, whole at each moment."""
    half = file.with_name(f".{file.name}-{os.getpid()}")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    half.replace(file)
