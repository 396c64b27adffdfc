"""Limit a process with seccomp and Landlock, and drop its capabilities."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rewardstack_rules.confinement import landlock, seccomp
from rewardstack_rules.confinement.libc import drop_privileges
from rewardstack_rules.confinement.syscalls import GROUPS, expand_groups

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/gai.conf"),
    *("/etc/services", "/etc/protocols", "/etc/mime.types", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki/tls"),
    *("/etc/pki/ca-trust", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/sys/devices/system"),
)
"""Files and folders that system programs and libraries read. None of them holds a private key."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OWN_PROCESS = "/proc/self"
CODE = frozenset({".py", ".pyc", ".so", ".dist-info", ".egg-info"})
"""Suffixes of modules, and of folders with metadata of packages."""
SELF_KILLING = ("timer_create",)
"""System calls by which a process can make the kernel kill it with SIGKILL."""
WRITE = ~(landlock.EXECUTE | landlock.DEVICE_IOCTL)
"""All file rights except executing files and device ioctls."""

logger = logging.getLogger(__name__)


class Confinement:
    """Limits a process to reading code, computing, starting threads, and whatever the arguments allow in addition.

    Create the object in the parent process, and call `enter` in the process to confine.

    Args:
        allow: names of system calls, or of groups of them (`syscalls.GROUPS`), to allow in addition.
        files: additional files and folders that the process can read, and write if `write` is allowed.
        only: files and folders that the process can read besides `files`, and execute if `programs` is allowed. None
            means system files and, only to read, installed Python code. A list also changes the allowed system calls:
            the process can create pairs of stream sockets, which asyncio needs, but no shared memory, and cannot set a
            timer or a limit by which the kernel would kill it with SIGKILL.
        without: names of system calls to refuse.

    Raises:
        OSError: there is no table of system calls for this machine.
    """

    def __init__(
        self,
        allow: Sequence[str] = (),
        files: Sequence[str] = (),
        *,
        only: Sequence[str] | None = None,
        without: Collection[str] = (),
    ) -> None:
        groups = [name for name in allow if name in GROUPS]
        calls = expand_groups(tuple(allow))
        if only is not None:
            groups, calls = [*groups, "stream_pairs", "no_sigkill", "own_memory"], calls | {"socketpair"}
            without = {*without, *SELF_KILLING}
        self._filter = seccomp.Filter(seccomp.compile_filter(seccomp.machine(), groups, calls, without))
        self._has_network = "network" in groups
        code = landlock.READ | (landlock.EXECUTE if "programs" in groups else 0)
        data = landlock.READ | (WRITE if "write" in groups else 0)
        readable = _system_rules(code) if only is None else ((path, code) for path in only)
        self._rules = [*readable, *((path, data) for path in files)]
        self.has_landlock = landlock.version() > 0

    def enter(self) -> None:
        """Confine this process permanently; it must have only one thread.

        Raises:
            OSError: the kernel or the container refuses the confinement.
        """
        self.limit_files()
        self.limit_calls()

    def limit_files(self) -> None:
        """Drop privileges and limit the files of this process and its future children.

        Raises:
            OSError: the kernel or the container refuses the confinement.
        """
        drop_privileges()
        if self.has_landlock:
            landlock.restrict(self._rules, has_network=self._has_network)

    def limit_calls(self) -> None:
        """Limit the system calls of this process. Call `limit_files` first.

        Raises:
            OSError: the kernel or the container refuses the confinement.
        """
        self._filter.install()

    def check(self) -> None:
        """Test the confinement in a child process; this process must have only one thread.

        Raises:
            OSError: the kernel or the container refuses the confinement.
        """
        pid = os.fork()
        if pid == 0:
            try:
                self.enter()
                os._exit(0)
            except OSError as error:
                os._exit(error.errno or errno.EINVAL)
            finally:
                os._exit(errno.EINVAL)
        number = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if number != 0:
            raise OSError(number, os.strerror(abs(number)))


def make_confinement(allow: Sequence[str] = (), files: Sequence[str] = ()) -> Confinement | None:
    """Return a confinement that works on this machine; log a warning for each gap in it.

    Args:
        allow: names of system calls, or of groups of them, to allow in addition (`syscalls.ADDABLE`).
        files: additional files and folders that the process can read, and write if `write` is allowed.

    Returns:
        The confinement; None, after a warning, if no seccomp filter can be loaded here.
    """
    try:
        confinement = Confinement(allow, files)
        confinement.check()
    except OSError as error:
        logger.warning("isolated processes are not confined: no seccomp filter can be loaded here (%s)", error)
        return None
    if not confinement.has_landlock:
        logger.warning("confined processes can read every file of their user: the kernel has no Landlock")
    if allow or files:
        logger.warning("confined reward functions may also use: %s", ", ".join([*allow, *files]))
    return confinement


def _system_rules(code: int) -> Iterator[tuple[str, int]]:
    """Yield the Landlock rules for system files, devices and installed Python code.

    Args:
        code: rights to system files. Devices, and Python code in other folders, can only be read.
    """
    trees = dict.fromkeys([*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix])
    yield from ((path, code) for path in trees)
    yield from ((path, landlock.READ) for path in (*DEVICES, OWN_PROCESS))
    for folder in filter(os.path.isdir, dict.fromkeys(sys.path)):
        if not any(Path(folder).is_relative_to(tree) for tree in trees):
            yield folder, landlock.READ_FOLDER
            yield from ((path, landlock.READ) for path in _find_code(Path(folder)))


def _find_code(folder: Path) -> Iterator[str]:
    """Yield the modules and packages in a folder; skip other files, such as keys and data."""
    for path in _entries(folder):
        is_package = path.name.isidentifier() and path.is_dir() and any(_find_modules(path))
        if path.suffix in CODE or is_package:
            yield str(path)


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):  # the folder may not be readable
        return list(folder.iterdir())
    return []


def _find_modules(folder: Path) -> Iterator[Path]:
    yield from folder.glob("*.py")
    yield from folder.glob("*/__init__.py")
