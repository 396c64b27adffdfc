"""Explain operating system errors to the user: permission denied, full disk, read-only file system."""

from __future__ import annotations

import errno
import os
import pwd
from contextlib import suppress
from pathlib import Path

from services.stack import space
from services.stack.errors import StackError
from services.stack.rundir import ROOT

FULL_BYTES = 2**20
"""Number of free bytes below which a disk counts as full."""


def explain_os_error(error: OSError | StackError) -> StackError:
    """Return an operating system error as a StackError with path and remedy; return a StackError unchanged."""
    if isinstance(error, StackError):
        return error
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full_error(path)
    if path is None:
        return StackError(str(error) or type(error).__name__)
    if error.errno in (errno.EACCES, errno.EPERM):
        return _denied_error(path)
    if error.errno == errno.EROFS:
        return StackError(
            f"{path} is on a file system that cannot be written to",
            "work in a copy of the tree on a writable disk, or set RUN_DIR and MODELS_DIR to writable folders",
        )
    return StackError(f"{path}: {error.strerror}")


def disk_full_error(path: Path | None = None) -> StackError:
    """Return the error for a full disk.

    Args:
        path: path that could not be written; if None, the disks that the stack uses are checked.
    """
    written = (ROOT, ROOT / os.environ.get("RUN_DIR", ".run"), Path(os.environ.get("TMPDIR") or "/tmp"))
    existing = [folder for folder in written if folder.exists()]
    # If no disk is full, the user has probably reached a quota. The disk of the quota is unknown, so name all folders.
    folders = [path] if path else [folder for folder in existing if is_full(folder)] or existing
    names = " or ".join(map(str, folders))
    return StackError(f"the disk of {names} is full", f"make room there (df -h {folders[0]}), then try again")


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full."""
    return space.free(folder) < FULL_BYTES


def _denied_error(path: Path) -> StackError:
    """Return the error for a path that this user may not access.

    If the path or its folder has another owner, the error names the owner.
    """
    real = Path(os.path.realpath(path))
    existing = next(place for place in (real, *real.parents) if os.path.lexists(place))
    for place in (existing, existing.parent):
        if (owner := place.stat().st_uid) != os.geteuid():
            user = _user_name(owner)
            return StackError(
                f"{path}: permission denied; {place} belongs to {user}",
                f"run this command as {user}, or work in your own checkout",
            )
    return StackError(f"{path}: permission denied", f"chmod u+rwx {existing.parent} {existing}")


def _user_name(user: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return f"user {user}"
