"""Compile and load a seccomp filter that allows only listed system calls.

This module does not use libseccomp, because that system library may be missing or too old to know every call.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import sys
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rewardstack_rules.confinement.libc import call, check_result
from rewardstack_rules.confinement.syscalls import ABSENT, NEEDED, NEWEST, NUMBERS

LOAD, JUMP_IF_EQUAL, JUMP_IF_ABOVE, AND, RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
"""Instructions of classic BPF (linux/bpf_common.h): load a word, compare it with a constant, mask it, return."""
NUMBER_OFFSET, ARCHITECTURE_OFFSET, ARGUMENTS_OFFSET = 0, 4, 16
"""Byte offsets in `struct seccomp_data`. On little-endian machines the low half of an argument comes first."""
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
"""Results of a filter: allow the call, kill the process, or fail with EPERM or ENOSYS."""
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""Number of each architecture in `seccomp_data` (linux/audit.h), by the name that `platform.machine` returns."""

SET_MODE_FILTER, SYNC_THREADS = 1, 1
SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}

CLONE_THREAD = 0x00010000
CLONE_VFORK = 0x00004000
"""A flag of clone(2): the caller sleeps until its child ends or executes a program."""
CLONE_NEW = 0x7E020080
"""All flags of clone(2) that create a namespace."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
"""Flags of open(2) that change a file."""
PR_NAMES = (15, 16)
PR_READING = (3, 21, 23, 39)
PR_SET_VMA = 0x53564D41
"""Operations of prctl(2). `PR_NAMES` set and return the name of a thread, `PR_READING` return an attribute of the
process, and `PR_SET_VMA` names memory."""
DESCRIPTORS = (fcntl.F_DUPFD, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL, fcntl.F_DUPFD_CLOEXEC)
TERMINAL = (0x5401, 0x802C542A, 0x5413)
"""ioctl(2) requests on terminals: TCGETS and TCGETS2 for isatty(3), and TIOCGWINSZ, which returns the window size."""
OPEN_FILE = (0x541B, 0x5421, 0x5450, 0x5451)
"""ioctl(2) requests on open files: FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""

PROGRAM_FD, AT_EMPTY_PATH = 3, 0x1000
"""The only file descriptor that `execveat` may run, and the flag by which it runs a descriptor instead of a path."""

MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
"""Flags of mmap(2). Pages of memory that both create are not counted for a process that no longer maps them."""

AF_UNIX, SOCK_STREAM, SOCK_TYPES = 1, 1, 0xF
RLIMITS = tuple(range(1, 15))
"""All limits of setrlimit(2) except those that kill with SIGKILL: RLIMIT_CPU (0) and RLIMIT_RTTIME (15)."""


class Argument(NamedTuple):
    """A condition on one 32-bit half of an argument of a system call: `half & mask` must be one of `values`.

    For an integer, a condition on the low half is enough, because the kernel ignores the high half of all integer
    arguments that are restricted here. For a pointer, both halves need a condition.
    """

    position: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    is_high: bool = False


class AnyOf(NamedTuple):
    """Conditions of which at least one must hold."""

    options: tuple[Argument, ...]


Condition = Argument | AnyOf | tuple[Argument | AnyOf, ...] | None
"""Conditions that must all hold for a call to be allowed; None for no condition."""

ARGUMENTS: dict[str, Condition] = {
    "open": Argument(1, (0,), WRITING),
    "openat": Argument(2, (0,), WRITING),
    "clone": Argument(0, (CLONE_THREAD,), CLONE_THREAD | CLONE_VFORK | CLONE_NEW),
    "fcntl": Argument(1, DESCRIPTORS),
    "ioctl": Argument(1, (*TERMINAL, *OPEN_FILE)),
    "prctl": Argument(0, (*PR_NAMES, *PR_READING, PR_SET_VMA)),
    "prlimit64": Argument(0, (0,)),
    "execveat": (Argument(0, (PROGRAM_FD,)), Argument(4, (AT_EMPTY_PATH,))),
}
GROUP_CONDITIONS: dict[str, dict[str, Condition]] = {
    "stream_pairs": {"socketpair": (Argument(0, (AF_UNIX,)), Argument(1, (SOCK_STREAM,), SOCK_TYPES))},
    "no_sigkill": {
        "setrlimit": Argument(0, RLIMITS),
        "prlimit64": (
            Argument(0, (0,)),
            AnyOf((Argument(1, RLIMITS), Argument(2, (0,)))),
            AnyOf((Argument(1, RLIMITS), Argument(2, (0,), is_high=True))),
        ),
    },
    "own_memory": {"mmap": Argument(3, (0, MAP_SHARED, MAP_ANONYMOUS), MAP_SHARED | MAP_ANONYMOUS)},
    "programs": {"clone": Argument(0, (0,), CLONE_NEW)},
    "write": {
        "open": None,
        "openat": None,
        "fcntl": Argument(1, (*DESCRIPTORS, fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW, 36, 37, 38)),
    },
}
"""Conditions that replace those of `ARGUMENTS`, by group. asyncio needs `stream_pairs`. With `no_sigkill`, a process
can read all its limits, but cannot set those by which the kernel would kill it with SIGKILL. With `own_memory`, all
memory of a process is counted for it. 36 to 38 are commands of
fcntl(2) that lock an open file description."""


class Instruction(NamedTuple):
    """One BPF instruction: operation code, jump offsets for a true and a false comparison, and constant."""

    code: int
    if_true: int
    if_false: int
    constant: int


def compile_filter(
    machine: str, groups: Collection[str] = (), calls: Collection[str] = (), without: Collection[str] = ()
) -> list[Instruction]:
    """Return a filter that allows the calls that the interpreter needs (`syscalls.NEEDED`), and `calls`.

    Calls of `syscalls.ABSENT`, and calls with a number above `syscalls.NEWEST`, fail with ENOSYS. All other calls fail
    with EPERM. A call of another architecture kills the process.

    Args:
        machine: the architecture, a key of `ARCHITECTURES`.
        groups: names of groups, whose conditions in `GROUP_CONDITIONS` apply. This does not allow the calls of a group:
            they must be in `calls`.
        calls: names of additional system calls to allow.
        without: names of system calls to refuse.

    Raises:
        OSError: there is no table of system calls for this architecture.
    """
    if machine not in ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    conditions = dict(ARGUMENTS)
    for group in groups:
        conditions |= GROUP_CONDITIONS.get(group, {})
    filter_ = [
        Instruction(LOAD, 0, 0, ARCHITECTURE_OFFSET),
        *_unless_equal(ARCHITECTURES[machine], KILL),
        Instruction(LOAD, 0, 0, NUMBER_OFFSET),
        Instruction(JUMP_IF_ABOVE, 0, 1, NEWEST),
        Instruction(RETURN, 0, 0, UNKNOWN),
    ]
    for name in sorted({*ABSENT, *NEEDED, *calls}.difference(without)):
        number = getattr(NUMBERS[name], machine)
        if number is not None:
            condition = None if name in ABSENT else conditions.get(name)
            filter_ += _rule(number, condition, UNKNOWN if name in ABSENT else ALLOW)
    return [*filter_, Instruction(RETURN, 0, 0, REFUSE)]


def _rule(number: int, condition: Condition, result: int) -> list[Instruction]:
    conditions = (condition,) if isinstance(condition, (Argument, AnyOf)) else condition or ()
    body = [*(one for each in conditions for one in _refuse_unless(each)), Instruction(RETURN, 0, 0, result)]
    return [Instruction(JUMP_IF_EQUAL, 0, len(body), number), *body]


def _refuse_unless(condition: Argument | AnyOf) -> list[Instruction]:
    """Return the instructions that refuse the call unless the condition holds."""
    options = condition.options if isinstance(condition, AnyOf) else (condition,)
    body = [Instruction(RETURN, 0, 0, REFUSE)]
    for option in reversed(options):
        jumps = [Instruction(JUMP_IF_EQUAL, len(body) + at, 0, value) for at, value in enumerate(option.values)]
        word = ARGUMENTS_OFFSET + 8 * option.position + 4 * option.is_high
        body = [Instruction(LOAD, 0, 0, word), Instruction(AND, 0, 0, option.mask), *reversed(jumps), *body]
    return body


def _unless_equal(value: int, result: int) -> list[Instruction]:
    return [Instruction(JUMP_IF_EQUAL, 1, 0, value), Instruction(RETURN, 0, 0, result)]


def machine() -> str:
    """Return the architecture of this process: a key of `ARCHITECTURES`, or the name of an unsupported architecture."""
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    return name if sys.maxsize > 2**32 else f"32 bits on {name}"


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction)))


class Filter:
    """A compiled filter in the kernel's format.

    Args:
        instructions: what `compile_filter` returned for this machine's architecture.
    """

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        array = (_Instruction * len(instructions))(*(_Instruction(*instruction) for instruction in instructions))
        self._program = _Program(len(instructions), array)
        self._call = SECCOMP_CALL[machine()]

    def install(self) -> None:
        """Load the filter permanently into all threads of this process, which must have set `no_new_privs`.

        Raises:
            OSError: the kernel has no seccomp, or refuses the filter.
        """
        check_result("seccomp", call(self._call, SET_MODE_FILTER, SYNC_THREADS, ctypes.byref(self._program)))
