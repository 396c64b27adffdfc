"""Publish the endpoints file, from which trainers read the URLs and keys of the stack.

The file contains a heartbeat, which `native/watch.py` renews, so that trainers on other nodes notice a killed stack.
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
    """Write the endpoints file. `renew` updates it, `withdraw` removes it.

    Args:
        run: run directory of the stack.
        file: path of the file that trainers read.
        servers: URLs and keys of the servers, by the client's environment variable.
        trust: CA file that clients need; empty if they need none.

    Raises:
        StackError: another process holds a port of the gateway.
        OSError: a file cannot be written.
    """
    if problem := port_conflict(run):
        raise StackError(problem, remedy("gateway", problem))
    if (previous := published(run)) and previous["file"] != str(file):
        withdraw(run)
    _replace(run.published, json.dumps({"file": str(file), "servers": dict(servers), "trust": trust}))
    renew(run)


def renew(run: RunDir) -> str:
    """Write the current time to the endpoints file, if one is published.

    If another process holds a port of the gateway, remove the file, because trainers would send keys to that process.

    Returns:
        The reason why the file was removed; empty if it was not.

    Raises:
        OSError: the file cannot be written or removed.
    """
    record = published(run)
    problem = port_conflict(run) if record else ""
    if record and problem:
        _unlink(record)
    elif record:
        content = {"version": VERSION, "written": time.time(), "servers": record["servers"]}
        _replace(Path(record["file"]), json.dumps(content, indent=1) + "\n")
    return problem


def withdraw(run: RunDir) -> None:
    """Remove the endpoints file, if there is one and no other stack has overwritten it.

    Raises:
        OSError: the file cannot be removed.
    """
    if record := published(run):
        # Remove the record first, so that `renew` does not write the file again.
        run.published.unlink(missing_ok=True)
        _unlink(record)


def published(run: RunDir) -> dict[str, Any] | None:
    """Return the record that `publish` has saved; None if nothing is published."""
    try:
        return dict(json.loads(run.published.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def port_conflict(run: RunDir) -> str:
    """Return a message about another process that holds a port of the gateway; empty if there is none."""
    running = run.load()
    return health.port_conflict("gateway", run, running) if running else ""


def _unlink(record: Mapping[str, Any]) -> None:
    """Remove the endpoints file of a record, unless another stack has overwritten it."""
    file = Path(record["file"])
    with suppress(FileNotFoundError, ValueError):
        if json.loads(file.read_text(encoding="utf-8"))["servers"] == record["servers"]:
            file.unlink()


def _replace(file: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an existing file atomically."""
    temporary = file.with_name(f".{file.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    temporary.replace(file)
