"""The directory in which the processes of a server count together; in memory, because they map its files.

On a full disk, a process that maps a file would crash.
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
"""None for the default directory of temporary files."""
PREFIX = "reward-server-metrics-"
BEGAN = "began"
"""A file whose age is that of the counts."""


def make_metrics_dir(folder: str | None = IN_MEMORY) -> str:
    """Create a directory that is removed when this process exits; remove those that killed processes left behind.

    This process and its forks hold a lock on it while it is in use.

    Args:
        folder: the parent; None for the default directory of temporary files.
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
    """Reset the counts of a directory, in which all processes of a server count from now on.

    Args:
        directory: created if it is missing.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.glob("*.db"):
        stale.unlink()
    (directory / BEGAN).touch()


def _remove_left_behind(folder: Path) -> None:
    for directory in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):  # it is in use, or another user's
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
            finally:
                os.close(descriptor)
