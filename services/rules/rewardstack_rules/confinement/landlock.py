"""Limit the files that a process can access, with Landlock (landlock(7))."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable

from rewardstack_rules.confinement.libc import call, check_result

CREATE, ADD, RESTRICT = 444, 445, 446
"""Numbers of the system calls, the same on every architecture."""
VERSION_FLAG, PATH_BENEATH = 1, 1

EXECUTE, WRITE_FILE, READ_FILE, READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, DEVICE_IOCTL = 1 << 14, 1 << 15
FILE_ONLY_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | DEVICE_IOCTL
READ = READ_FILE | READ_FOLDER
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file rights of each Landlock version. A version without an entry has the rights of the version before it."""
NETWORK_VERSION, ALL_TCP = 4, 0b11
SCOPE_VERSION, ABSTRACT_SOCKETS, SIGNALS = 6, 0b01, 0b10


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the Landlock version of the kernel; 0 if it has none."""
    return max(call(CREATE, None, 0, VERSION_FLAG), 0)


def restrict(rules: Iterable[tuple[str, int]], *, has_network: bool = False) -> None:
    """Limit this process permanently to the file rights in `rules`.

    From Landlock version `SCOPE_VERSION` on, the process and its future children can signal only each other.

    Args:
        rules: paths, each with the rights to the path and to everything below it; missing and inaccessible paths are
            skipped.
        has_network: whether the process can still use TCP and abstract Unix sockets. If False, TCP is refused from
            version `NETWORK_VERSION` on, and abstract Unix sockets from version `SCOPE_VERSION` on.

    Raises:
        OSError: the kernel has no Landlock, or refuses the rules.
    """
    known = version()
    handled = next((rights for least, rights in sorted(FILE_RIGHTS.items(), reverse=True) if known >= least), 0)
    scoped = SIGNALS | (0 if has_network else ABSTRACT_SOCKETS)
    ruleset = _Ruleset(
        handled,
        ALL_TCP if known >= NETWORK_VERSION and not has_network else 0,
        scoped if known >= SCOPE_VERSION else 0,
    )
    size = 8 if known < NETWORK_VERSION else 16 if known < SCOPE_VERSION else 24
    rules_fd = check_result("landlock", call(CREATE, ctypes.byref(ruleset), size, 0))
    try:
        for path, rights in rules:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                _add(rules_fd, path, rights & handled)
        check_result("landlock", call(RESTRICT, rules_fd, 0))
    finally:
        os.close(rules_fd)


def _add(rules_fd: int, path: str, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= FILE_ONLY_RIGHTS
        rule = _PathRule(rights, parent)
        check_result("landlock", call(ADD, rules_fd, PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(parent)
