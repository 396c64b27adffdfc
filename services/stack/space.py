"""Whether disks have room for what is put on them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from services.stack.errors import StackError

GIB = 2**30


def free(path: Path) -> int:
    """Bytes that are free on the disk of a path, which need not be there yet."""
    return shutil.disk_usage(existing(path)).free


def is_disk(path: Path) -> bool:
    """Whether a path is on a disk that tells its size: /proc does not, nor does a tmpfs without a limit."""
    return shutil.disk_usage(existing(path)).total > 0


def require(needs: Mapping[Path, int]) -> None:
    """See that every disk has room for what all of these paths on it need together.

    Args:
        needs: bytes by path.

    Raises:
        StackError: one has not; names the paths.
    """
    disks: dict[int, list[Path]] = {}
    for path in filter(is_disk, needs):
        disks.setdefault(existing(path).stat().st_dev, []).append(path)
    for paths in disks.values():
        needed, left = sum(needs[path] for path in paths), free(paths[0])
        if needed > left:
            raise StackError(
                f"{' and '.join(map(str, paths))} need {needed / GIB:.1f} GiB of disk, and {left / GIB:.1f} are free",
                "make room there; RUN_DIR and TMPDIR may name folders on another disk",
            )


def existing(path: Path) -> Path:
    """The path itself, or the first folder above it that is there."""
    return path if path.exists() else existing(path.parent)
