"""System calls by number, and capabilities, through the C library."""

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
    numbers = (ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)
    return int(_LIBC.syscall(ctypes.c_long(number), *numbers))


def checked(what: str, result: int) -> int:
    """Return the result of a system call; raise OSError from `errno` if it is negative.

    Args:
        what: name of the call, for the error.
        result: what the call returned.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def give_up_privileges() -> None:
    """Drop every capability of this process and of the programs that it starts; neither can gain any again.

    Raises:
        OSError: the kernel refuses to drop them.
    """
    checked("no_new_privs", _LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(CAPABILITIES):  # the call fails, harmlessly, for a capability that does not exist
        _LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    checked("capset", _LIBC.capset(header, (ctypes.c_uint32 * 6)()))
