"""Make system calls by number and drop capabilities, through the C library."""

from __future__ import annotations

import ctypes
import os
from typing import Any

PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 38, 24, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITIES = 64
"""Number of bits in the kernel's capability sets."""
CAPABILITY_VERSION = 0x20080522

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long


def call(number: int, *arguments: Any) -> int:
    """Make a system call and return its result; -1 if it fails."""
    converted = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    return int(_LIBC.syscall(ctypes.c_long(number), *converted))


def check_result(what: str, result: int) -> int:
    """Return the result of a system call; raise OSError from `errno` if it is negative.

    Args:
        what: name of the call, for the error.
        result: what the call returned.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def drop_privileges() -> None:
    """Drop every capability of this process permanently; programs that it starts get none, either.

    Raises:
        OSError: the kernel refuses to drop them.
    """
    check_result("no_new_privs", _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(CAPABILITIES):  # ignore errors: not every number is a capability
        _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    check_result("capset", _LIBC.capset(header, (ctypes.c_uint32 * 6)()))
