"""What the system refuses: no permission, a full disk, one that cannot be written to."""

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
"""Bytes; a disk that has less is full."""


def explain_os_error(error: OSError | StackError) -> StackError:
    """What is said of an error of the system: the path, and the remedy; one of the stack says it itself."""
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
            "work in a copy of the tree elsewhere, or set RUN_DIR and MODELS_DIR to folders that can be written to",
        )
    return StackError(f"{path}: {error.strerror}")


def full(path: Path | None = None) -> StackError:
    """What is said of a full disk.

    Args:
        path: that could not be written; None where the system did not name it, and the disks are looked at.
    """
    written = (ROOT, ROOT / os.environ.get("RUN_DIR", ".run"), Path(os.environ.get("TMPDIR") or "/tmp"))
    there = [folder for folder in written if folder.exists()]
    # Under a quota the disk itself has room.
    found = [path] if path else [folder for folder in there if is_full(folder)] or there
    where = " or ".join(map(str, found))
    return StackError(f"the disk of {where} is full", f"make room there (df -h {found[0]}), then try again")


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has no room."""
    return space.free(folder) < NO_ROOM


def _denied(path: Path) -> StackError:
    """Whose it is, of the path and its folder, or of the first above them that can be seen."""
    at = Path(os.path.realpath(path))
    while not _seen(at) and at != at.parent:
        at = at.parent
    for place in (at, at.parent):
        if (owner := place.stat().st_uid) != os.geteuid():
            whose = _name(owner)
            return StackError(
                f"{path}: permission denied; {place} belongs to {whose}",
                f"do this as {whose}, or work in a checkout of your own",
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
