"""The directory with the counts of all processes of a server.

The directory is in memory if possible, because processes map its files and would crash if the disk were full.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from rewardstack_rules.metrics.groups import FILE as GROUPS

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A directory in memory. It is None if `/dev/shm` is not writable; the default temporary directory is then used."""
PREFIX = "reward-server-metrics-"
START_FILE = "began"
"""Name of a file whose modification time is the time when counting began."""


def make_metrics_dir(folder: str | None = IN_MEMORY) -> str:
    """Return the path of a new directory, and remove the directories that killed processes have left.

    The new directory is removed when this process exits. This process and its forks hold a lock on it, which shows that
    it is in use.

    Args:
        folder: the parent directory; None for the default directory of temporary files.
    """
    _remove_left_behind(Path(folder or tempfile.gettempdir()))
    directory, maker = tempfile.mkdtemp(prefix=PREFIX, dir=folder), os.getpid()
    fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_EX)

    def remove() -> None:
        if os.getpid() == maker:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


def clear_counts(directory: Path) -> None:
    """Remove old counts from a directory, and store the current time as the time when counting began.

    Call this before the processes of a server start to count in the directory.

    Args:
        directory: the directory; created if it is missing.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for stale in (*directory.glob("*.db"), directory / GROUPS):
        stale.unlink(missing_ok=True)
    (directory / START_FILE).touch()


def _remove_left_behind(folder: Path) -> None:
    for directory in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # the directory is in use, or another user's
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(descriptor)
