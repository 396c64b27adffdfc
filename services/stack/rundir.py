"""The private directory of the running stack, by default `.run/`: configuration, sockets, logs and what runs."""

from __future__ import annotations

import fcntl
import json
import locale
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from services.stack.errors import StackError

ROOT = Path(__file__).resolve().parents[2]
CHART_FILES = ROOT / "helm/rewardstack/files"
"""Files that every deployment mounts, passes or packages; a chart cannot point outside of itself."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAFE_PATH = re.compile(r"[\w./+@~,:=-]+")
MAX_SOCKET_PATH = 107
SUPERVISOR_SUFFIX = len(".4194304")
TEMPORARY_NAME = len("/vllm_dist_") + 32
"""Of the longest socket or file that a model server makes in its folder for temporary files."""
LINKED = "rewardstack-"
"""Begins the name of that folder where it is not in the run directory itself."""
DEFAULT = ".run"
SUPERVISOR = "supervisor.supervisord"
"""The module that leads the session of a stack's processes; `--configuration` in the run directory ends its command."""
MOUNTING = ("squashfuse", "squashfuse_ll", "fuse-overlayfs")
"""What mounts an image where nobody is root; it outlives a program that is killed, in a process group of its own."""
MARK = ".rewardstack"
"""Says that a stack made the directory, so that nothing is taken from, or put into, one of somebody else's."""
MARKS = (MARK, "supervisord.conf", "compose.json")
"""Each of them says so: earlier versions left no mark."""
PUBLISHED = ("published.json", "endpoints.json")
WRITTEN = (
    MARK,
    "*.conf",
    "*.group",
    "*.pid",
    "*.sock",
    "compose*.json",
    "lock",
    "running.json",
    "samples.jsonl",
    "settings.json",
    *PUBLISHED,
)
"""The files that a stack leaves beside its folders."""


@dataclass(frozen=True)
class Running:
    """What was started, kept for the commands that follow.

    Args:
        session: process id of supervisord, which is the session of all it starts.
        boot: id of the boot in which it was started; process ids mean nothing after another.
        gateway: digest of the files that the gateway has taken up.
        host: address at which this machine reaches the gateway.
        ports: port by the name of its setting.
        services: names of what was started.
        tls: whether the gateway speaks TLS.
        healthy: names of the services that have been healthy since they were started.
        backend: the deployment, a value of STACK.
    """

    session: int
    boot: str
    gateway: str
    host: str
    ports: dict[str, int]
    services: list[str]
    tls: bool = False
    healthy: list[str] = field(default_factory=list)
    backend: str = "native"


def require_plain(path: Path) -> None:
    """Check that every configuration file can hold a path.

    Raises:
        StackError: it cannot.
    """
    if not SAFE_PATH.fullmatch(str(path)):
        raise StackError(
            f"{path} holds a space or another character that configuration files cannot hold",
            "move the tree to a plain path, or set RUN_DIR to one",
        )
    # Python reads the paths of a virtual environment as the locale has them.
    if not str(path).isascii() and "UTF-8" not in (codeset := locale.nl_langinfo(locale.CODESET)):
        raise StackError(
            f"{path} holds letters that this locale ({codeset}) does not know",
            "export LC_ALL=C.UTF-8, or move the tree to a plain path",
        )


class RunDir:
    """Where the files of one stack are.

    Args:
        path: absolute, or relative to the root of the tree.

    Raises:
        StackError: configuration files or sockets cannot hold this path, or another user controls the directory.
    """

    def __init__(self, path: str) -> None:
        if path.startswith("~"):
            raise StackError(f"RUN_DIR: {path} begins with ~, which only a shell reads", "write $HOME instead")
        self.path = (ROOT / path).resolve()
        self.logs = self.path / "logs"
        self.queue = self.path / "queue"
        self.secrets = self.path / "secrets"
        self.caches = self.path / "caches"
        self.supervisor_socket = self.path / "supervisor.sock"
        self.published = self.path / "published.json"
        self.settings = self.path / "settings.json"
        self._state = self.path / "running.json"
        self._tmp = self.path / "tmp"
        self._programs = self.path / "programs"
        for used in (ROOT, self.path):
            require_plain(used)
        # supervisord binds its socket under this name and its process id first.
        if len(str(self.supervisor_socket)) + SUPERVISOR_SUFFIX > MAX_SOCKET_PATH:
            raise StackError(
                f"RUN_DIR: {self.path} is too long for a Unix socket",
                "set RUN_DIR to a short path such as /tmp/rewards",
            )
        self._require_trusted(ROOT / path)

    def _require_trusted(self, given: Path) -> None:
        """Check that no other user has put files where commands read, and replace, the stack's own.

        The owner of the tree is trusted, because its code runs here.

        Args:
            given: the directory, or a link to it.
        """
        trusted = (os.geteuid(), 0, ROOT.stat().st_uid)
        try:
            owners = {path: path.lstat().st_uid for path in (given, self.path)}
            found = self.path.stat()
        except OSError:
            return  # it does not exist, or its first reader will report the error
        for path, owner in owners.items():
            if owner not in trusted:
                raise StackError(
                    f"RUN_DIR: {path} belongs to user {owner}, not to you", "name another folder: RUN_DIR=..."
                )
        is_open = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if is_open and self.path.is_dir() and os.access(self.path, os.R_OK) and any(self.path.iterdir()):
            raise StackError(
                f"RUN_DIR: others may write into {self.path}", f"chmod 700 {self.path}, if what is in it is yours"
            )

    def require_own(self) -> None:
        """Check that a stack made the directory, or that it is empty: `clean` would remove files of others.

        Raises:
            StackError: it is no directory, or holds files of others.
        """
        if self.path.exists() and not self.path.is_dir():
            raise StackError(f"RUN_DIR: {self.path} is no folder", "name one, or a path where nothing is yet")
        names = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if names and names.isdisjoint(MARKS) and self.path != ROOT / DEFAULT:
            raise StackError(
                f"RUN_DIR: {self.path} holds files of others",
                f"name a folder that is empty or not there yet, such as {self.path / 'rewardstack'}",
            )

    def make(self) -> None:
        """Create the directory, readable by its owner alone.

        Raises:
            StackError: it holds files of others.
        """
        self.require_own()
        for directory in (self.path, self.logs, self.queue, self.caches, self._programs):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        (self.path / MARK).touch()
        if self._tmp.exists():
            return
        self._tmp.unlink(missing_ok=True)  # a link to a folder that is gone
        if len(str(self._tmp)) + TEMPORARY_NAME > MAX_SOCKET_PATH:
            self._tmp.symlink_to(tempfile.mkdtemp(prefix=LINKED))
        else:
            self._tmp.mkdir(mode=0o700)

    @property
    def temporary(self) -> Path:
        """The folder for temporary files and sockets; a link leads to a shorter path where this one is too long."""
        return self._tmp.resolve()

    def socket(self, service: str) -> Path:
        """Return the Unix socket that a service behind the gateway listens on.

        Raises:
            StackError: its path is too long.
        """
        path = self.path / f"{service}.sock"
        if len(str(path)) > MAX_SOCKET_PATH:
            raise StackError(f"{path} is too long for a Unix socket", "set RUN_DIR to a shorter path")
        return path

    def program(self, service: str) -> Path:
        """Return the file that says how a service is started."""
        return self._programs / f"{service}.json"

    def log(self, service: str) -> Path:
        """Return the log file of a service, or of `supervisord`."""
        return self.logs / f"{service}.log"

    def log_sizes(self) -> dict[str, int]:
        """Return the bytes of each log so far, by the name of its file."""
        return {log.name: log.stat().st_size for log in self.logs.glob("*.log")}

    def group_file(self, service: str) -> Path:
        """Holds the process group of a service, which is the process id of its main process."""
        return self.path / f"{service}.group"

    def process_group(self, service: str) -> int | None:
        """The process group that a service was started with last; None where it never was."""
        try:
            return int(self.group_file(service).read_text())
        except (OSError, ValueError):
            return None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep another `make up` or `make down` out.

        Raises:
            StackError: another one is running, or the directory holds files of others.
        """
        self.require_own()
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError("another make up or make down is running here", "wait until it ends") from None
            yield

    def save(self, running: Running) -> None:
        """Keep what was started."""
        self._state.write_text(json.dumps(asdict(running)), encoding="utf-8")

    def load(self) -> Running | None:
        """Return what was started in this boot; None where nothing was, or `clear` was called since.

        Raises:
            OSError: the directory cannot be read.
        """
        try:
            running = Running(**json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return running if running.boot == boot_id() else None

    def clear(self) -> None:
        """Forget what was started."""
        self._state.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything that the stack has written here, jobs too; files of others stay.

        Raises:
            OSError: something cannot be removed.
        """
        if self._tmp.is_symlink() and self._tmp.exists() and self.temporary.name.startswith(LINKED):
            shutil.rmtree(self.temporary)
        for folder in (self.logs, self.queue, self.caches, self.secrets, self._programs, self._tmp):
            if folder.is_symlink():
                folder.unlink()  # the user's own link; its target is not the stack's
            elif folder.exists():
                shutil.rmtree(folder)
        for pattern in WRITTEN:
            for file in self.path.glob(pattern):
                file.unlink()
        with suppress(OSError):  # it does not exist, or holds something else
            self.path.rmdir()


def boot_id() -> str:
    """Return what tells this boot of the machine from any other."""
    return BOOT_ID.read_text().strip()
