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

FULL = (errno.ENOSPC, errno.EDQUOT)
DENIED = (errno.EACCES, errno.EPERM)
NO_ROOM = 2**20
"""Number of free bytes below which a disk counts as full."""


def explain_os_error(error: OSError | StackError) -> StackError:
    """Return an operating system error as a StackError with path and remedy; return a StackError unchanged."""
    if isinstance(error, StackError):
        return error
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno in FULL:
        return full(path)
    if path is None:
        return StackError(str(error) or type(error).__name__)
    if error.errno in DENIED:
        return _denied(path)
    if error.errno == errno.EROFS:
        return StackError(
            f"{path} is on a file system that cannot be written to",
            "work in a copy of the tree on a writable disk, or set RUN_DIR and MODELS_DIR to writable folders",
        )
    return StackError(f"{path}: {error.strerror}")


def full(path: Path | None = None) -> StackError:
    """Return the error for a full disk.

    Args:
        path: path that could not be written; None if unknown: then the disks that the stack uses are checked.
    """
    written = (ROOT, ROOT / os.environ.get("RUN_DIR", ".run"), Path(os.environ.get("TMPDIR") or "/tmp"))
    there = [folder for folder in written if folder.exists()]
    # With a quota, the disk itself is not full.
    found = [path] if path else [folder for folder in there if is_full(folder)] or there
    where = " or ".join(map(str, found))
    return StackError(f"the disk of {where} is full", f"make room there (df -h {found[0]}), then try again")


def is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full."""
    return space.free(folder) < NO_ROOM


def _denied(path: Path) -> StackError:
    """Return the error for a denied path; name the owner of the path or of its folder if it is another user."""
    at = Path(os.path.realpath(path))
    while not _seen(at) and at != at.parent:
        at = at.parent
    for place in (at, at.parent):
        if (owner := place.stat().st_uid) != os.geteuid():
            whose = _name(owner)
            return StackError(
                f"{path}: permission denied; {place} belongs to {whose}",
                f"do this as {whose}, or work in your own checkout",
            )
    return StackError(f"{path}: permission denied", f"chmod u+rwx {at.parent} {at}")


def _seen(path: Path) -> bool:
    with suppress(OSError):
        return bool(path.lstat())
    return False


def _name(user: int) -> str:
    with suppress(KeyError):
        return pwd.getpwuid(user).pw_name
    return f"user {user}"
