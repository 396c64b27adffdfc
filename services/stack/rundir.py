"""Manage the private directory of a running stack (RUN_DIR): configuration, sockets, logs and state."""

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
"""Files that all deployments share. They are in the chart, because a chart cannot use files outside its folder."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAFE_PATH = re.compile(r"[\w./+@~,:=-]+")
MAX_SOCKET_PATH = 107
SUPERVISOR_SUFFIX = len(".4194304")
TEMPORARY_NAME = len("/vllm_dist_") + 32
"""Length of the longest socket or file name that a model server creates in its temporary folder."""
TEMPORARY_PREFIX = "rewardstack-"
"""Prefix of the temporary folder's name if the folder is outside the run directory."""
DEFAULT = ".run"
SUPERVISOR = "supervisor.supervisord"
"""Module that runs supervisord, the session leader of a stack. The last argument of supervisord's command is the
path of a file in the run directory."""
MOUNT_PROGRAMS = ("squashfuse", "squashfuse_ll", "fuse-overlayfs")
"""Programs that mount an image without root. They survive if the process group of the program in the image is killed,
because they are in another group."""
MARK = ".rewardstack"
"""File that marks a directory as created by a stack."""
MARKS = (MARK, "supervisord.conf", "compose.json")
"""Files that show that a stack created a directory. Earlier versions created no `MARK`."""
WRITTEN = (
    MARK,
    "*.new",
    "*.conf",
    "*.group",
    "*.pid",
    "*.sock",
    "compose*.json",
    "endpoints.json",
    "lock",
    "published.json",
    "running.json",
    "samples.jsonl",
    "settings.json",
)
"""Patterns of the files, not folders, that a stack creates in the run directory."""


@dataclass(frozen=True)
class Running:
    """State of a started stack, saved for later commands.

    Args:
        session: process id of supervisord, which is also the session id of all processes of the stack.
        boot: id of the boot in which the stack was started. After a reboot, the process ids are invalid.
        gateway: digest of the configuration files that the gateway has loaded.
        host: address at which this machine reaches the gateway.
        ports: port numbers by setting.
        services: names of the started services.
        tls: whether the gateway uses TLS.
        healthy: names of the services that have been healthy since they were started.
        backend: deployment, as a value of STACK.
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


def require_safe_path(path: Path) -> None:
    """Check that a path is valid in every configuration file.

    Raises:
        StackError: the path contains unsupported characters.
    """
    if not SAFE_PATH.fullmatch(str(path)):
        raise StackError(
            f"{path} holds a space or another character that configuration files cannot hold",
            "move the tree to a path without such characters, or set RUN_DIR to such a path",
        )
    # Python decodes the paths of a virtual environment with the encoding of the locale.
    if not str(path).isascii() and "UTF-8" not in (codeset := locale.nl_langinfo(locale.CODESET)):
        raise StackError(
            f"{path} has non-ASCII characters, but the locale's encoding ({codeset}) is not UTF-8",
            "export LC_ALL=C.UTF-8, or move the tree to a path in ASCII",
        )


class RunDir:
    """The run directory of one stack.

    Args:
        path: path of the directory, absolute or relative to the root of the tree.

    Raises:
        StackError: the path is invalid or too long, or another user controls the directory.
    """

    def __init__(self, path: str) -> None:
        if path.startswith("~"):
            raise StackError(f"RUN_DIR: {path} begins with ~, which only a shell expands", "write $HOME instead")
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
        for folder in (ROOT, self.path):
            require_safe_path(folder)
        # supervisord first binds its socket to this path with its process id appended.
        if len(str(self.supervisor_socket)) + SUPERVISOR_SUFFIX > MAX_SOCKET_PATH:
            raise StackError(
                f"RUN_DIR: {self.path} is too long for a Unix socket",
                "set RUN_DIR to a short path such as /tmp/rewards",
            )
        self._require_trusted(ROOT / path)

    def _require_trusted(self, path: Path) -> None:
        """Check that no other user can create files in the directory, because commands trust its files.

        Root and the owner of the checkout are trusted, because commands run the code of the checkout.

        Args:
            path: the directory, or a link to it.
        """
        trusted = (os.geteuid(), 0, ROOT.stat().st_uid)
        try:
            owners = {each: each.lstat().st_uid for each in (path, self.path)}
            status = self.path.stat()
        except OSError:
            return  # the directory does not exist, or its first reader will report the error
        for owned, owner in owners.items():
            if owner not in trusted:
                raise StackError(
                    f"RUN_DIR: {owned} belongs to user {owner}, not to you", "name another folder: RUN_DIR=..."
                )
        is_open = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if is_open and self.path.is_dir() and os.access(self.path, os.R_OK) and any(self.path.iterdir()):
            raise StackError(
                f"RUN_DIR: others may write into {self.path}", f"chmod 700 {self.path}, if its contents are yours"
            )

    def require_own(self) -> None:
        """Check that the directory belongs to a stack, because `make clean` removes files in it.

        The check passes if a stack has created the directory, if the directory is empty or does not exist, or if it is
        the default directory.

        Raises:
            StackError: the path is not a directory, or the directory contains files, but none of `MARKS`.
        """
        if self.path.exists() and not self.path.is_dir():
            raise StackError(f"RUN_DIR: {self.path} is not a folder", "name a folder, or a path that does not exist")
        names = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if names and names.isdisjoint(MARKS) and self.path != ROOT / DEFAULT:
            raise StackError(
                f"RUN_DIR: {self.path} contains files that no stack has created",
                f"name a folder that is empty or does not exist yet, such as {self.path / 'rewardstack'}",
            )

    def make(self) -> None:
        """Create the directory, accessible only by its owner.

        Raises:
            StackError: the directory contains files, but no stack has created it (see `require_own`).
        """
        self.require_own()
        for directory in (self.path, self.logs, self.queue, self.caches, self._programs):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        (self.path / MARK).touch()
        if self._tmp.exists():
            return
        self._tmp.unlink(missing_ok=True)  # a link whose target no longer exists
        if len(str(self._tmp)) + TEMPORARY_NAME > MAX_SOCKET_PATH:
            self._tmp.symlink_to(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX))
        else:
            self._tmp.mkdir(mode=0o700)

    @property
    def temporary(self) -> Path:
        """Folder for temporary files and sockets.

        It is in the run directory, or in TMPDIR if the run directory's path is too long for sockets.
        """
        return self._tmp.resolve()

    def socket(self, service: str) -> Path:
        """Return the Unix socket that a service behind the gateway listens on.

        Raises:
            StackError: the path is too long for a Unix socket.
        """
        path = self.path / f"{service}.sock"
        if len(str(path)) > MAX_SOCKET_PATH:
            raise StackError(f"{path} is too long for a Unix socket", "set RUN_DIR to a shorter path")
        return path

    def program(self, service: str) -> Path:
        """Return the path of the file that describes a service's program."""
        return self._programs / f"{service}.json"

    def log(self, service: str) -> Path:
        """Return the path of the log of a service, or of `supervisord`."""
        return self.logs / f"{service}.log"

    def log_sizes(self) -> dict[str, int]:
        """Return the current size of each log in bytes, by file name."""
        return {log.name: log.stat().st_size for log in self.logs.glob("*.log")}

    def group_file(self, service: str) -> Path:
        """Return the path of the file with the id of a service's process group."""
        return self.path / f"{service}.group"

    def process_group(self, service: str) -> int | None:
        """Return the process group of a service's last start; None if it is not known."""
        try:
            return int(self.group_file(service).read_text())
        except (OSError, ValueError):
            return None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory against another `make up` or `make down`.

        Raises:
            StackError: another `make up` or `make down` is running, or no stack has created the directory (see
                `require_own`).
        """
        self.require_own()
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError("another make up or make down is running here", "wait until it ends") from None
            yield

    def save(self, running: Running) -> None:
        """Save the state of the started stack atomically, so that an interruption leaves the previous state."""
        new = self._state.with_suffix(".new")
        new.write_text(json.dumps(asdict(running)), encoding="utf-8")
        new.replace(self._state)

    def load(self) -> Running | None:
        """Return the saved state of the stack; None if there is no valid state, or if the machine has been rebooted.

        Raises:
            OSError: the directory cannot be read.
        """
        try:
            running = Running(**json.loads(self._state.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None
        return running if running.boot == boot_id() else None

    def clear(self) -> None:
        """Remove the saved state."""
        self._state.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything that the stack has created in the directory, including jobs.

        Other files whose names match `WRITTEN` are removed, too.

        Raises:
            OSError: something cannot be removed.
        """
        if self._tmp.is_symlink() and self._tmp.exists() and self.temporary.name.startswith(TEMPORARY_PREFIX):
            shutil.rmtree(self.temporary)
        for folder in (self.logs, self.queue, self.caches, self.secrets, self._programs, self._tmp):
            if folder.is_symlink():
                folder.unlink()  # its target is removed already, or belongs to the user who created the link
            elif folder.exists():
                shutil.rmtree(folder)
        for pattern in WRITTEN:
            for file in self.path.glob(pattern):
                file.unlink()
        with suppress(OSError):  # the directory does not exist, or contains other files
            self.path.rmdir()


def boot_id() -> str:
    """Return the id of the machine's current boot."""
    return BOOT_ID.read_text().strip()
