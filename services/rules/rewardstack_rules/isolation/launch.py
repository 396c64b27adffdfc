"""Starts the supervisor, and ends it with the last process that uses it: `prepare`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from rewardstack.errors import ConfigError, UnreachableError
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.supervisor import EXIT_BROKEN, SOCKET_NAME
from rewardstack_rules.process import import_path, module_command

START_SECONDS = 60
"""Timeout for the supervisor to start and load the entry, in seconds."""

SOCKET_PATH_BYTES = 107
"""Maximum length of a Unix socket's path on Linux, in bytes."""

INHERITED = frozenset(
    {
        *("PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8"),
    }
)
"""Environment variables that the supervisor and its children inherit, besides `LC_*` and those of the configuration."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Home:
    """A private directory for one supervisor, and a lifeline that shows whether any process still needs the supervisor.

    The lifeline is a pipe. This process and all processes forked from it hold the write end; the supervisor holds the
    read end. When the last of these processes ends, the supervisor sees the end of the pipe, exits and removes the
    directory. The first start creates the directory in TMPDIR, or in /tmp if TMPDIR is too long for a socket's path.

    Args:
        config: the entry and the limits.
    """

    def __init__(self, config: IsolationConfig) -> None:
        self.config = config
        name = f"rewardstack-{secrets.token_hex(8)}"
        self.directory = Path(tempfile.gettempdir(), name)
        if len(os.fsencode(self.directory / SOCKET_NAME)) > SOCKET_PATH_BYTES:
            self.directory = Path("/tmp", name)
        self.socket = self.directory / SOCKET_NAME
        self._lifeline, self._users = os.pipe()

    def start(self) -> None:
        """Start the supervisor unless it is running; return when it accepts tasks.

        Raises:
            ConfigError: the entry cannot be run; the message has the reason.
            UnreachableError: the supervisor did not start, or not in time.
        """
        with self._lock():
            if self._answers():
                return
            try:
                self._launch()
            except ConfigError:
                shutil.rmtree(self.directory, ignore_errors=True)
                raise

    def close(self) -> None:
        """Close this process's ends of the lifeline, and forget this home: `home_of` then creates a new one."""
        os.close(self._users)
        os.close(self._lifeline)
        _homes.pop(self.config, None)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Create the directory, and lock it against other processes within the block."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        with open(self.directory / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough if a process forked meanwhile has it open

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _launch(self) -> None:
        command = module_command("rewardstack_rules.isolation.supervisor")
        arguments = [str(self.directory), str(self._lifeline), self.config.to_json()]
        try:
            done = subprocess.run(
                command + arguments,
                env=_environment(self.config.variables),
                pass_fds=[self._lifeline],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=START_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"supervisor of {self.config.entry}: no start within {START_SECONDS} s") from error
        message = done.stdout.decode(errors="replace").strip()
        if done.returncode == EXIT_BROKEN:
            raise ConfigError(f"entry: {self.config.entry} cannot be run: {message}", "entry")
        if done.returncode != 0:
            raise UnreachableError(f"supervisor of {self.config.entry}: no start (exit status {done.returncode})")


def _environment(named: Collection[str]) -> dict[str, str]:
    """Return the supervisor's environment: inherited variables, the same import path, and one thread per library."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name in named or name.startswith("LC_")
    }
    fixed = dict.fromkeys(ONE_THREAD, "1")
    fixed["PYTHONPATH"] = import_path()
    fixed["PYTHONHASHSEED"] = "0"  # the same task has the same result in every child of every server
    return kept | fixed


_homes: dict[IsolationConfig, Home] = {}


def prepare(config: IsolationConfig) -> Home:
    """Start the supervisor for this configuration, unless this process or a parent has started it.

    Call this in the process that forks the others (gunicorn's `on_starting`). The forked processes inherit the home and
    share one supervisor, which ends with the last of them. A single process need not call this.

    Args:
        config: the entry and the limits.

    Returns:
        The home; equal configurations have the same home.

    Raises:
        ConfigError: the entry cannot be run.
        UnreachableError: the supervisor did not start.
    """
    home = home_of(config)
    home.start()
    return home


def home_of(config: IsolationConfig) -> Home:
    """Return the home for this configuration; create it if there is none, but do not start a supervisor."""
    if config not in _homes:
        _homes.setdefault(config, Home(config))
    return _homes[config]
