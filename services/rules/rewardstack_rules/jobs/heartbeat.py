"""The files by which a container's probes find out how a worker is: their command starts no interpreter.

`services/stack/services_table.py` has the commands.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import suppress
from pathlib import Path

ALIVE = "alive"
"""Touched as long as the worker runs, whether or not the queue answers."""
READY = "ready"
"""Touched as long as the queue answers."""

log = logging.getLogger(__name__)


def heartbeat_dir() -> Path:
    """Return the directory of the files."""
    return Path(tempfile.gettempdir(), "rewardstack-worker")


def reset() -> None:
    """Remove the files of an earlier worker in the same place."""
    with suppress(OSError):
        for name in (ALIVE, READY):
            (heartbeat_dir() / name).unlink(missing_ok=True)


def beat(name: str) -> None:
    """Touch a file. Workers of other users on this machine may own the directory: that is no error.

    Args:
        name: `ALIVE` or `READY`.
    """
    try:
        heartbeat_dir().mkdir(exist_ok=True)
        (heartbeat_dir() / name).touch()
    except OSError as error:
        log.debug("no heartbeat: %s", error)
