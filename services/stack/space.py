"""Check that disks have enough space."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from services.stack.errors import StackError

GIB = 2**30


def free(path: Path) -> int:
    """Return the free bytes on the disk of a path, which need not exist."""
    return shutil.disk_usage(nearest_existing(path)).free


def is_disk(path: Path) -> bool:
    """Return whether a path is on a disk with a known size; False for /proc and a tmpfs without a limit."""
    return shutil.disk_usage(nearest_existing(path)).total > 0


def require(needs: Mapping[Path, int]) -> None:
    """Check that every disk has enough space for all paths on it together.

    Args:
        needs: bytes that will be written, by path.

    Raises:
        StackError: a disk is too small; the message names its paths.
    """
    disks: dict[int, list[Path]] = {}
    for path in filter(is_disk, needs):
        disks.setdefault(nearest_existing(path).stat().st_dev, []).append(path)
    for paths in disks.values():
        needed, left = sum(needs[path] for path in paths), free(paths[0])
        if needed > left:
            raise StackError(
                f"{' and '.join(map(str, paths))} need {needed / GIB:.1f} GiB of disk, and {left / GIB:.1f} are free",
                "free space there, or set RUN_DIR and TMPDIR to folders on another disk",
            )


def nearest_existing(path: Path) -> Path:
    """Return the path itself if it exists, or else its nearest parent that exists."""
    return path if path.exists() else nearest_existing(path.parent)
