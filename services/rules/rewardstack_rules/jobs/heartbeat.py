"""Heartbeat files of a worker. A container's probes check their age, which needs no Python interpreter.

`services/stack/services_table.py` has the commands of the probes.
"""

from __future__ import annotations

import logging
import tempfile
from contextlib import suppress
from pathlib import Path

ALIVE = "alive"
"""Name of the file that is touched while the worker runs, whether or not the queue answers."""
READY = "ready"
"""Name of the file that is touched while the queue answers."""

log = logging.getLogger(__name__)


def heartbeat_dir() -> Path:
    """Return the directory of the heartbeat files."""
    return Path(tempfile.gettempdir(), "rewardstack-worker")


def reset() -> None:
    """Remove the heartbeat files, when a worker starts or ends."""
    with suppress(OSError):
        for name in (ALIVE, READY):
            (heartbeat_dir() / name).unlink(missing_ok=True)
        heartbeat_dir().rmdir()


def touch(name: str) -> None:
    """Touch a heartbeat file. Ignore errors, because another user's worker may own the directory.

    Args:
        name: `ALIVE` or `READY`.
    """
    try:
        heartbeat_dir().mkdir(exist_ok=True)
        (heartbeat_dir() / name).touch()
    except OSError as error:
        log.debug("cannot write the heartbeat: %s", error)
