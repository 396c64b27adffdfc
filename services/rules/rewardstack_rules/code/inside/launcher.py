"""Fork a confined process for each program: `PYTHON launcher.py SOCKET PARENT BOUNDARY COMPILER`.

The runner starts this script. SOCKET is a descriptor, and PARENT the runner's process id. BOUNDARY is `container` if
programs may run without Landlock, else empty. COMPILER is the path of a compiler if the launcher only compiles, and
empty if the launcher runs programs.

The launcher never reads a program or a test: the forked processes read and write through descriptors. Messages on the
socket are JSON. The runner sends `[id, program, limits, options]` with descriptors to start a process, `["kill", id]`
to kill it, and `["pid", id]` to ask for its process id. At its start, the launcher sends `["ready", folder,
is_shared]` or `["broken", why]`. `folder` is the compiler's folder, which the runner removes; `is_shared` says whether
processes of others count toward the limit of threads. Later, it sends `[id, "exit",
status, CPU seconds, peak bytes]`, `[id, "pid", pid]`, and `[id, "fault", why]` if a process could not be forked or
confined.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any, NoReturn

OLDEST = (3, 10)
FOLDER = Path(__file__).parents[2]
NOBODY = 65534
OWN_USERS = 0x70000000
"""The user id of a launcher of root is this number plus its process id: nobody else has it, and so nobody else's
processes count toward the limit of its programs' threads."""
MESSAGE_BYTES = 4096
MAX_DESCRIPTORS = 6
FIRST = 3
"""Number of the first descriptor of a program's files."""
OPEN_FILES = 64
NICE = 5
READABLE = (
    *("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo"),
    *("/etc/localtime", "/etc/ld.so.cache", "/dev/null", "/dev/full", "/dev/random", "/dev/urandom"),
)
"""Files and folders that programs may read, in addition to those of the interpreter."""
TOOLS = (
    "/usr/bin",
    "/usr/include",
    "/usr/libexec",
    *(f"/usr/local/{name}" for name in ("bin", "include", "lib64", "libexec")),
)
"""Folders of compilers, in addition to `READABLE`."""
NOT_FOR_COMPILERS = ("kill", "tgkill", "setsid", "setpgid", "memfd_create")
"""System calls that are refused to compilers, although they are in the groups `programs` and `write` of `syscalls`."""
EXECUTING = ("binary", "build")
"""Kinds of programs that execute another file. Their processes do not read Python's files, so they give up root's file
access if the launcher has kept it (`_give_up_root`)."""
PREFIX, STALE_SECONDS = "rewardstack-build-", 3600
"""Prefix of compilers' folders, and the age after which such a folder is removed as left over."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
NO_LANDLOCK = (
    "the kernel has no Landlock, so programs could read every file of the server's user; use a kernel of 5.13 or later "
    "that has it enabled, or set CODE_BOUNDARY=container if the container itself is the isolation boundary"
)


def _import_ours() -> None:
    """Make `rewardstack_rules` importable without its `__init__`, and remove this file's folder from `sys.path`."""
    sys.path[:] = [path for path in sys.path if path and Path(path).resolve() != Path(__file__).resolve().parent]
    package = types.ModuleType(FOLDER.name)
    package.__path__ = [str(FOLDER)]
    sys.modules[FOLDER.name] = package


class Launcher:
    """Forks, measures and kills processes on the runner's behalf.

    Args:
        control: the socket to the runner.
        confinement: the `Confinement` of processes that do not execute a compiled program.
        executing: the `Confinement` of processes that execute a compiled program.
    """

    def __init__(self, control: socket.socket, confinement: Any, executing: Any) -> None:
        from rewardstack_rules.code.inside import processes, programs, tester
        from rewardstack_rules.isolation.process import die_with_parent

        self._control = control
        # Import here what the forked processes will call. An import after the fork would copy memory pages in each of
        # them.
        self._die_with_parent, self._set_limits = die_with_parent, processes.set_limits
        self._confinement, self._executing = confinement, executing
        self._programs = {
            "script": programs.script,
            "call": programs.call,
            "serve": programs.serve,
            "test": tester.test,
            "check": tester.check,
            "binary": programs.binary,
            "build": programs.build,
        }
        self._born = processes.address_space()
        self._pids: dict[int, int] = {}
        self._handles: dict[int, int] = {}
        """The runner's ids of processes, by pidfd."""
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Handle messages and exits of processes until the runner closes the socket."""
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif not self._handle_message():
                    return

    def _send(self, *words: Any) -> None:
        self._control.send(json.dumps(words).encode())

    def _handle_message(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, MAX_DESCRIPTORS)
        if not message:
            return False
        words = json.loads(message)
        if words[0] == "kill":
            if words[1] in self._pids:
                _kill(self._pids[words[1]])
        elif words[0] == "pid":
            self._send(words[1], "pid", self._pids.get(words[1], 0))
        else:
            self._start(words, fds)
        return True

    def _start(self, words: list[Any], fds: list[int]) -> None:
        ident, launcher = words[0], os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._send(ident, "fault", f"no process could be forked: {error.strerror}")
            pid = -1
        if pid == 0:
            self._become(words, fds, launcher)
        for fd in fds:
            os.close(fd)
        if pid > 0:
            handle = os.pidfd_open(pid)
            self._pids[ident], self._handles[handle] = pid, ident
            self._poll.register(handle, select.POLLIN)

    def _reap(self, handle: int) -> None:
        ident = self._handles.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status, usage = os.wait4(self._pids.pop(ident), 0)
        seconds = usage.ru_utime + usage.ru_stime
        self._send(ident, "exit", os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024)

    def _become(self, words: list[Any], fds: list[int], launcher: int) -> NoReturn:
        """Confine the forked process and run a program in it; never return to the launcher's loop."""
        ident, program, limits, options = words
        try:
            if program in EXECUTING:
                # The kernel and the C library restrict executed files if the real and the effective user differ. So set
                # the effective user to the real user.
                os.setresuid(-1, os.getuid(), os.getuid())
            self._die_with_parent(launcher)
            os.setsid()
            self._set_limits(limits, self._born)
            moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, OPEN_FILES) for fd in fds]
            resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
            (self._executing if program == "binary" else self._confinement).limit_calls()
        except BaseException as error:  # after any failure no program may run
            with contextlib.suppress(OSError):
                self._send(ident, "fault", f"a process could not be confined: {error}")
            os._exit(1)
        try:
            for at, fd in enumerate(moved):
                os.dup2(fd, FIRST + at)
            os.closerange(FIRST + len(moved), moved[-1] + 256)
            gc.enable()
            self._programs[program]([FIRST + at for at in range(len(moved))], options)
        finally:
            os._exit(1)


def _kill(pid: int) -> None:
    """Kill a process and the processes that it has started. A compiler, for example, starts some.

    A process that has just been forked does not lead a process group yet, and is killed alone.
    """
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)


def _remove_old_folders() -> None:
    """Remove old folders of compilers, which killed runners have left."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if old.lstat().st_mtime < time.time() - STALE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)


def _make_folder() -> str:
    """Return a new folder for a compiler's files."""
    made = tempfile.mkdtemp(prefix=PREFIX)
    if os.getuid() != os.geteuid():  # a compiler runs as the real user
        os.chmod(made, 0o770)
    return made


def _confinements(compiler: str, folder: str) -> list[Any]:
    """Return two confinements: for processes in general, and for those that execute a compiled program.

    Args:
        compiler: path of the compiler; empty if none is run.
        folder: the folder that the compiler may write.
    """
    from rewardstack_rules.confinement.confinement import Confinement

    only = [*dict.fromkeys((*READABLE, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix))]
    if not compiler:
        return [Confinement(only=only), Confinement(("execveat",), only=only)]
    own = str(Path(compiler).resolve().parents[1])
    more = (*TOOLS, *(() if own in ("/", "/usr", "/usr/local") else (own,)))
    only = [path for path in (*only, *more) if not path.startswith("/dev/")]
    return [Confinement(("programs", "write"), (folder, os.devnull), only=only, without=NOT_FOR_COMPILERS)] * 2


def _give_up_root() -> bool:
    """Switch from root to a user of this process alone, because the limit of threads does not apply to root.

    If other users cannot read the interpreter, the effective user stays root, and the process keeps root's file access.

    Returns:
        Whether processes of others have the same user: this process is not root's, or root of a user namespace without
        so many users, in which it becomes `nobody`.
    """
    if os.getuid() != 0:
        return True
    own = OWN_USERS + os.getpid()
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        for user in (own, NOBODY):
            with contextlib.suppress(OSError):
                os.setresuid(user, user if _can_read(user) else 0, 0)
                break
        os.setresuid(-1, -1, os.geteuid())
    return os.getuid() != own


def _can_read(user: int) -> bool:
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.setresuid(user, user, user)
            for folder in filter(os.path.isdir, sys.path):
                os.listdir(folder)
            open(os.__file__, "rb").close()
            os._exit(0)
        os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _confined_launcher(control: socket.socket, parent: int, boundary: str, compiler: str) -> tuple[Launcher, str, bool]:
    """Confine this process; raise OSError if it cannot be confined.

    Returns:
        Its launcher, the compiler's folder, and whether processes of others count toward the limit of threads.
    """
    if sys.version_info < OLDEST:
        raise OSError(f"CODE_PYTHON is Python {sys.version.split()[0]}; set it to a Python of version 3.10 or later")
    # Import everything now: later this process may be unable to read its code.
    from rewardstack_rules.code.inside import tester  # noqa: F401
    from rewardstack_rules.code.inside.programs import replace_files, replace_streams
    from rewardstack_rules.confinement import confinement as _  # noqa: F401
    from rewardstack_rules.confinement import landlock
    from rewardstack_rules.isolation.process import die_with_parent, hide_memory

    if not landlock.version() and boundary != "container":
        raise OSError(NO_LANDLOCK)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    os.nice(max(0, NICE - os.nice(0)))
    _remove_old_folders()
    is_shared = _give_up_root()
    folder = _make_folder() if compiler else ""
    confinement, executing = _confinements(compiler, folder)
    launcher = Launcher(control, confinement, executing)
    replace_files()
    replace_streams()
    os.chdir(folder or "/")
    os.environ.clear()
    os.environ.update(ENVIRONMENT, TMPDIR=folder or "/tmp")
    die_with_parent(parent)
    hide_memory()
    confinement.limit_files()
    confinement.check()
    return launcher, folder, is_shared


def main() -> None:
    """Confine the launcher, tell the runner whether programs can be run, and handle its messages."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_ours()
    try:
        launcher, folder, is_shared = _confined_launcher(control, int(sys.argv[2]), *sys.argv[3:5])
    except Exception as error:  # the runner reports it
        control.send(json.dumps(["broken", str(error)]).encode())
        raise SystemExit(1) from error
    atexit._clear()
    gc.collect()
    gc.disable()
    gc.freeze()
    control.send(json.dumps(["ready", folder, is_shared]).encode())
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        launcher.serve()


if __name__ == "__main__":
    main()
