"""Takes from a process what a reward function needs least: network, programs, files to write, and other processes.

A filter of the kernel's (seccomp(2), by libseccomp) refuses the system calls for it, for good and in all threads. A
refusal is an error, EPERM, and no death: libraries do without, and a function that cannot fails its sample with a
reason. Reading files stays allowed, for modules are loaded when they are needed.
"""

from __future__ import annotations

import errno
import logging
import os
from typing import Any

NETWORK = "socket socketpair connect bind"
PROGRAMS = "execve execveat fork vfork"
FILES = (
    "creat truncate rename renameat renameat2 link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir mknod"
    " mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr"
    " lsetxattr fsetxattr removexattr lremovexattr fremovexattr open_by_handle_at mount umount2 pivot_root chroot"
)
PROCESSES = (
    "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal pidfd_getfd ptrace kcmp"
    " process_vm_readv process_vm_writev process_madvise setpriority ioprio_set sched_setaffinity sched_setscheduler"
    " sched_setparam sched_setattr shmget msgget semget mq_open"
)
KERNEL = (
    "io_uring_setup unshare setns bpf perf_event_open userfaultfd keyctl add_key request_key fanotify_init iopl ioperm"
    " migrate_pages move_pages syslog init_module finit_module delete_module kexec_load kexec_file_load"
)
MACHINE = (
    "acct sethostname setdomainname vhangup reboot clock_settime clock_adjtime adjtimex settimeofday swapon swapoff"
)

UNREADABLE = "clone3 openat2"
"""Take their arguments where a filter cannot see them. Who is told that there are none takes `clone` and `openat`."""
CLONE_THREAD = 0x00010000
WRITING = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC)
SIGNALLING = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902)}
"""Commands that have the kernel signal a process on somebody's behalf, whoever that is: F_SETOWN, F_SETSIG, F_SETOWN_EX
(fcntl(2)), FIOSETOWN, SIOCSPGRP (socket(7)). The kernel reads the lower half of the argument alone."""
OPENING = {"open": 1, "openat": 2}
"""Which argument holds the flags."""

HINT = "a confined function has no network, starts no program and writes no file"

logger = logging.getLogger(__name__)


def prepare() -> Any:
    """What `load()` confines a process with; None, with a line in the log, where that cannot be had here.

    To be called once, in a process of one thread: a process is forked to try it.
    """
    try:
        confinement = _filter()
        _try(confinement)
    except (ImportError, RuntimeError, OSError) as error:
        logger.warning("isolated processes have network and files here, as there is no seccomp filter: %s", error)
        return None
    return confinement


def _filter() -> Any:
    import pyseccomp as seccomp  # raises RuntimeError where there is no libseccomp

    refuse, all_calls = seccomp.ERRNO(errno.EPERM), seccomp.SyscallFilter(seccomp.ALLOW)
    all_calls.set_attr(seccomp.Attr.CTL_TSYNC, True)

    def add(action: int, name: str, *arguments: Any) -> None:
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        if number != -1:  # else it is younger than this libseccomp
            all_calls.add_rule(action, number, *arguments)

    for name in " ".join((NETWORK, PROGRAMS, FILES, PROCESSES, KERNEL, MACHINE)).split():
        add(refuse, name)
    for name in UNREADABLE.split():
        add(seccomp.ERRNO(errno.ENOSYS), name)
    add(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, CLONE_THREAD, 0))
    add(refuse, "prlimit64", seccomp.Arg(0, seccomp.NE, 0))
    for name, commands in SIGNALLING.items():
        for command in commands:
            add(refuse, name, seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, command))
    for name, position in OPENING.items():
        for flag in WRITING:
            add(refuse, name, seccomp.Arg(position, seccomp.MASKED_EQ, flag, flag))
    return all_calls


def _try(confinement: Any) -> None:
    """Has a process confined that ends then.

    Raises:
        OSError: the kernel, or what it runs in, does not let it.
    """
    pid = os.fork()
    if pid == 0:
        try:
            confinement.load()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or errno.EINVAL)
        finally:
            os._exit(errno.EINVAL)
    number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if number != 0:
        raise OSError(number, os.strerror(abs(number)))
