"""The private directory of the running stack, by default `.run/`: configuration, sockets, logs and what runs."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from services.stack.errors import StackError

ROOT = Path(__file__).resolve().parents[2]
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAFE_PATH = re.compile(r"[\w./+@~,:=-]+")
MAX_SOCKET_PATH = 107
SUPERVISOR_SUFFIX = len(".4194304")
WRITTEN = ("*.conf", "*.group", "*.pid", "*.sock", "compose*.json", "lock", "running.json", "samples.jsonl")
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
    """

    session: int
    boot: str
    gateway: str
    host: str
    ports: dict[str, int]
    services: list[str]
    tls: bool = False


class RunDir:
    """Where the files of one stack are.

    Args:
        path: absolute, or relative to the root of the tree.

    Raises:
        StackError: configuration files or sockets cannot hold this path.
    """

    def __init__(self, path: str) -> None:
        self.path = (ROOT / path).resolve()
        self.logs = self.path / "logs"
        self.queue = self.path / "queue"
        self.supervisor_socket = self.path / "supervisor.sock"
        self._state = self.path / "running.json"
        for used in (ROOT, self.path):
            if not SAFE_PATH.fullmatch(str(used)):
                raise StackError(
                    f"{used} holds a space or another character that configuration files cannot hold",
                    "move the tree to a plain path, or set RUN_DIR to one",
                )
        # supervisord binds its socket under this name and its process id first.
        if len(str(self.supervisor_socket)) + SUPERVISOR_SUFFIX > MAX_SOCKET_PATH:
            raise StackError(
                f"RUN_DIR: {self.path} is too long for a Unix socket",
                "set RUN_DIR to a short path such as /tmp/rewards",
            )

    def make(self) -> None:
        """Create the directory, readable by its owner alone."""
        for directory in (self.path, self.logs, self.queue, self.path / "programs", self.path / "tmp"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    def socket(self, service: str) -> Path:
        """The Unix socket that a service behind the gateway listens on.

        Raises:
            StackError: its path is too long.
        """
        path = self.path / f"{service}.sock"
        if len(str(path)) > MAX_SOCKET_PATH:
            raise StackError(f"{path} is too long for a Unix socket", "set RUN_DIR to a shorter path")
        return path

    def program(self, service: str) -> Path:
        """What a service is started with."""
        return self.path / "programs" / f"{service}.json"

    def log(self, service: str) -> Path:
        """The log file of a service, or of `supervisord`."""
        return self.logs / f"{service}.log"

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
        """Hold the stack against another `make up` or `make down`.

        Raises:
            StackError: another one holds it.
        """
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StackError("another make up or make down is at work here", "wait until it ends") from None
            yield

    def remember(self, running: Running) -> None:
        """Keep what was started."""
        self._state.write_text(json.dumps(asdict(running)), encoding="utf-8")

    def recall(self) -> Running | None:
        """What was started last in this boot, None where nothing was or `forget` was called since."""
        try:
            running = Running(**json.loads(self._state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return running if running.boot == boot_id() else None

    def remove(self) -> None:
        """Remove all that the stack has written here, the jobs of its queue too; files of others stay."""
        for folder in (self.logs, self.queue, *(self.path / name for name in ("programs", "secrets", "tmp"))):
            shutil.rmtree(folder, ignore_errors=True)
        for pattern in WRITTEN:
            for file in self.path.glob(pattern):
                file.unlink()
        with suppress(OSError):  # it is not there, or holds something else
            self.path.rmdir()

    def forget(self) -> None:
        """Nothing runs any more."""
        self._state.unlink(missing_ok=True)


def boot_id() -> str:
    """Tells this boot of the machine from any other."""
    return BOOT_ID.read_text().strip()
