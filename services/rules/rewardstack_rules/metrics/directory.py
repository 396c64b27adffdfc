"""Where the processes of a server count together: a directory in memory, since they map its files.

A file for which a disk has no room would end a process that maps it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""None for the directory of temporary files."""
PREFIX = "reward-server-metrics-"
BEGAN = "began"
"""A file of the directory, as old as the counts in it."""


def make_metrics_dir(folder: str | None = IN_MEMORY) -> str:
    """A new directory, which is removed when this process ends; one that is killed leaves it to the next one to start.

    This process, and all that it forks, hold a lock on it, by which it is known to be in use.

    Args:
        folder: to make it in; None for that of temporary files.
    """
    _remove_left_behind(Path(folder or tempfile.gettempdir()))
    directory, maker = tempfile.mkdtemp(prefix=PREFIX, dir=folder), os.getpid()
    fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_EX)

    def remove() -> None:
        if os.getpid() == maker:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return directory


def begin(directory: Path) -> None:
    """Has a directory hold no counts: from now on all processes of a server count in it, from 0.

    Args:
        directory: which is made where it is not there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.glob("*.db"):
        stale.unlink()
    (directory / BEGAN).touch()


def _remove_left_behind(folder: Path) -> None:
    for directory in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is in use, or somebody else's
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(descriptor)
