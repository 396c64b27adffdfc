"""The filter of system calls, run by an interpreter of BPF for both architectures."""

from __future__ import annotations

import errno
import fcntl
import os
import resource

import pytest

from rewardstack_rules.confinement.seccomp import (
    ALLOW,
    AND,
    ARCHITECTURES,
    CLONE_THREAD,
    JUMP_IF_ABOVE,
    JUMP_IF_EQUAL,
    KILL,
    LOAD,
    RETURN,
    Instruction,
    compile_filter,
)
from rewardstack_rules.confinement.syscalls import ADDABLE, GROUPS, NUMBERS, SINGLE, expand_groups
from tests.support.table import Table

ERRNO = 0x00050000
REFUSED, UNKNOWN = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS
X32 = 0x40000000
POINTER = 0x7FFD12345678
DENIED = {
    "x86_64": """
        mount:165 open_tree:428 move_mount:429 fsopen:430 fsconfig:431 fsmount:432 mount_setattr:442 umount2:166
        pivot_root:155 chroot:161 setns:308 unshare:272 shmget:29 shmat:30 shmctl:31 semget:64 semop:65
        semtimedop:220 msgget:68 msgsnd:69 msgrcv:70 mq_open:240 add_key:248 request_key:249 keyctl:250
        init_module:175 finit_module:313 delete_module:176 kexec_load:246 bpf:321 ptrace:101 process_vm_readv:310
        process_vm_writev:311 process_madvise:440 kcmp:312 io_uring_setup:425 io_uring_enter:426
        io_uring_register:427 perf_event_open:298 setxattr:188 setxattrat:463 removexattrat:466 file_setattr:469
        quotactl:179 personality:135 userfaultfd:323 pidfd_open:434 pidfd_getfd:438 modify_ldt:154
        open_by_handle_at:304 name_to_handle_at:303 setuid:105 capset:126 landlock:446 execve:59 socket:41 kill:62
        flock:73 memfd_create:319 reboot:169 swapon:167
    """,
    "aarch64": """
        mount:40 open_tree:428 move_mount:429 fsopen:430 fsconfig:431 fsmount:432 mount_setattr:442 umount2:39
        pivot_root:41 chroot:51 setns:268 unshare:97 shmget:194 shmat:196 shmctl:195 semget:190 semop:193
        semtimedop:192 msgget:186 msgsnd:189 msgrcv:188 mq_open:180 add_key:217 request_key:218 keyctl:219
        init_module:105 finit_module:273 delete_module:106 kexec_load:104 bpf:280 ptrace:117 process_vm_readv:270
        process_vm_writev:271 process_madvise:440 kcmp:272 io_uring_setup:425 io_uring_enter:426
        io_uring_register:427 perf_event_open:241 setxattr:5 setxattrat:463 file_setattr:469 quotactl:60
        personality:92 userfaultfd:282 pidfd_open:434 pidfd_getfd:438 open_by_handle_at:265 name_to_handle_at:264
        setuid:146 capset:91 execve:221 socket:198 kill:129 flock:32 memfd_create:279 reboot:142 swapon:224
    """,
}
"""Calls that no setting may allow, or that only one does, by their numbers."""
ARGUMENTS = {
    "open for reading": ("openat", (0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY), ALLOW),
    "open for writing": ("openat", (0, 0, os.O_WRONLY), REFUSED),
    "open for both": ("openat", (0, 0, os.O_RDWR), REFUSED),
    "create": ("openat", (0, 0, os.O_CREAT), REFUSED),
    "truncate": ("openat", (0, 0, os.O_TRUNC), REFUSED),
    "temporary file": ("openat", (0, 0, os.O_TMPFILE | os.O_WRONLY), REFUSED),
    "thread": ("clone", (0x3D0F00,), ALLOW),
    "process": ("clone", (17,), REFUSED),
    "namespace": ("clone", (CLONE_THREAD | 0x10000000,), REFUSED),
    "uninterruptible sleep": ("clone", (CLONE_THREAD | 0x4000,), REFUSED),
    "duplicate": ("fcntl", (3, fcntl.F_DUPFD_CLOEXEC), ALLOW),
    "lock": ("fcntl", (3, fcntl.F_SETLK), REFUSED),
    "lease": ("fcntl", (3, fcntl.F_SETLEASE), REFUSED),
    "signals to others": ("fcntl", (3, fcntl.F_SETOWN), REFUSED),
    "with a high half": ("fcntl", (3, fcntl.F_SETOWN | 1 << 32), REFUSED),
    "is a terminal": ("ioctl", (3, 0x5401), ALLOW),
    "immutable": ("ioctl", (3, 0x40086602), REFUSED),
    "type into a terminal": ("ioctl", (3, 0x5412), REFUSED),
    "name a thread": ("prctl", (15,), ALLOW),
    "tracer": ("prctl", (0x59616D61,), REFUSED),
    "outlive the parent": ("prctl", (1,), REFUSED),
    "own limits": ("prlimit64", (0,), ALLOW),
    "own CPU limit": ("prlimit64", (0, resource.RLIMIT_CPU, POINTER), ALLOW),
    "limits of others": ("prlimit64", (77,), REFUSED),
}


LIMITS = {
    "stack": ("setrlimit", (resource.RLIMIT_STACK, POINTER), ALLOW),
    "CPU": ("setrlimit", (resource.RLIMIT_CPU, POINTER), REFUSED),
    "CPU with a high half": ("setrlimit", (1 << 32, POINTER), REFUSED),
    "real-time CPU": ("setrlimit", (resource.RLIMIT_RTTIME, POINTER), REFUSED),
    "set the stack": ("prlimit64", (0, resource.RLIMIT_STACK, POINTER), ALLOW),
    "get the CPU": ("prlimit64", (0, resource.RLIMIT_CPU, 0, POINTER), ALLOW),
    "set the CPU": ("prlimit64", (0, resource.RLIMIT_CPU, POINTER), REFUSED),
    "at an address without a low half": ("prlimit64", (0, resource.RLIMIT_CPU, 1 << 32), REFUSED),
    "at an address without a high half": ("prlimit64", (0, resource.RLIMIT_CPU, 4096), REFUSED),
    "set the real-time CPU": ("prlimit64", (0, resource.RLIMIT_RTTIME, POINTER), REFUSED),
    "stack of others": ("prlimit64", (77, resource.RLIMIT_STACK, POINTER), REFUSED),
}
"""Limits that a program may set of itself, and those by which it would be killed with SIGKILL."""


def verdict(program: list[Instruction], machine: str, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do with a system call."""
    words = {0: number, 4: ARCHITECTURES.get(machine, 0)}
    for position, value in enumerate(arguments):
        words |= {16 + 8 * position: value & 0xFFFFFFFF, 20 + 8 * position: value >> 32}
    at = accumulator = 0
    while True:
        one = program[at]
        at += 1
        if one.code == RETURN:
            return one.constant
        if one.code == LOAD:
            accumulator = words.get(one.constant, 0)
        elif one.code == AND:
            accumulator &= one.constant
        else:
            assert one.code in (JUMP_IF_EQUAL, JUMP_IF_ABOVE)
            holds = accumulator == one.constant if one.code == JUMP_IF_EQUAL else accumulator > one.constant
            at += one.if_true if holds else one.if_false


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_denied(machine: str, table: Table) -> None:
    """What reaches the kernel's administration, other processes or files to write is refused, whatever is added."""
    program = compile_filter(machine)
    wide = compile_filter(machine, GROUPS, expand_groups(tuple(ADDABLE)))
    for name, _, number in (row.partition(":") for row in DENIED[machine].split()):
        with table.case(name):
            assert verdict(program, machine, int(number)) == REFUSED
            assert name in ADDABLE or verdict(wide, machine, int(number)) == REFUSED


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_only_the_table(machine: str) -> None:
    """No number outside of the tables is allowed, and what is above the newest known is unknown."""
    wide = compile_filter(machine, GROUPS, expand_groups(tuple(ADDABLE)))
    known = {getattr(number, machine) for number in NUMBERS.values()}
    assert {number for number in range(471) if verdict(wide, machine, number) != REFUSED} <= known
    assert {verdict(wide, machine, number) for number in (471, 600, X32 | 1, X32 | 520, 2**32 - 1)} == {UNKNOWN}
    assert {verdict(wide, machine, getattr(NUMBERS[name], machine)) for name in ("clone3", "openat2")} == {UNKNOWN}


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_arguments(machine: str, table: Table) -> None:
    """Calls that do harmless and harmful things are decided by their arguments."""
    program = compile_filter(machine)
    for name, (call, arguments, expected) in ARGUMENTS.items():
        with table.case(name):
            assert verdict(program, machine, getattr(NUMBERS[call], machine), arguments) == expected


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_limits(machine: str, table: Table) -> None:
    """A program can set its limits, but none by which the kernel would kill it as if from outside."""
    program = compile_filter(machine, ["no_sigkill"], without=["timer_create"])
    for name, (call, arguments, expected) in LIMITS.items():
        with table.case(name):
            assert verdict(program, machine, getattr(NUMBERS[call], machine), arguments) == expected
    with table.case("timers"):
        assert verdict(program, machine, getattr(NUMBERS["timer_create"], machine)) == REFUSED


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_added(machine: str, table: Table) -> None:
    """Each name that a setting may have adds its calls, and none of another group."""
    for name in ADDABLE:
        calls = expand_groups((name,))
        program = compile_filter(machine, [name] if name in GROUPS else [], calls)
        others = set(SINGLE).union(*GROUPS.values()) - calls
        with table.case(name):
            numbers = {call: getattr(NUMBERS[call], machine) for call in calls | others}
            allowed = {
                call for call, at in numbers.items() if at is not None and verdict(program, machine, at) == ALLOW
            }
            assert allowed == {call for call in calls if numbers[call] is not None}


def test_groups() -> None:
    """With programs a process can be forked, with files to write they can be opened so; never in a namespace."""
    number = NUMBERS["clone"].x86_64, NUMBERS["openat"].x86_64
    program = compile_filter("x86_64", ["programs", "write"])
    assert number[0] is not None and number[1] is not None
    assert verdict(program, "x86_64", number[0], (17,)) == ALLOW
    assert verdict(program, "x86_64", number[0], (17 | 0x10000000,)) == REFUSED
    assert verdict(program, "x86_64", number[1], (0, 0, os.O_WRONLY | os.O_CREAT)) == ALLOW


def test_other_architecture() -> None:
    """A call of another architecture, such as i386, ends the process; an unknown machine has no filter."""
    assert verdict(compile_filter("x86_64"), "i386", 11) == KILL
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        compile_filter("riscv64")


def test_numbers(table: Table) -> None:
    """Of each architecture no two calls of the tables share a number."""
    for machine in ARCHITECTURES:
        numbers = [getattr(number, machine) for number in NUMBERS.values()]
        with table.case(machine):
            known = [number for number in numbers if number is not None]
            assert len(known) == len(set(known))
