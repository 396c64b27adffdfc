"""Starts the supervisor, and ties its life to the processes that use it: `prepare`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from rewardstack.errors import ConfigError, UnreachableError
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.supervisor import EXIT_BROKEN, SOCKET_NAME

START_SECONDS = 60
"""How long the supervisor may take to load its entry."""

SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux."""

INHERITED = frozenset(
    {
        *("PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8"),
    }
)
"""Variables that the supervisor and all below it inherit, beside `LC_*` and those that the configuration names."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Home:
    """A private directory for one supervisor, and the lifeline that says whether anybody still needs it.

    The lifeline is a pipe: every process forked from this one holds its write end, the supervisor reads the other. When
    the last of them has gone, however it went, the supervisor sees the end of the pipe, ends and removes the directory.
    That is made when the first supervisor is started, in TMPDIR, or in /tmp if that is too long for a socket's path.

    Args:
        config: what is isolated.
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
        """Starts the supervisor, unless there is one; returns when it takes tasks.

        Raises:
            ConfigError: the entry cannot be run; the message says why.
            UnreachableError: the supervisor did not start in time.
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
        """This process needs the supervisor no more; only `IsolationClient`s of a closed home fail."""
        os.close(self._users)
        os.close(self._lifeline)
        _homes.pop(self.config, None)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One process at a time."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        with open(self.directory / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: a process forked meanwhile has it open, too

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _launch(self) -> None:
        command = [sys.executable, "-m", "rewardstack_rules.isolation.supervisor"]
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
            raise UnreachableError(f"{self.config.entry} in isolation: no start within {START_SECONDS} s") from error
        message = done.stdout.decode(errors="replace").strip()
        if done.returncode == EXIT_BROKEN:
            raise ConfigError(f"entry: {self.config.entry} cannot be run: {message}", "entry")
        if done.returncode != 0:
            raise UnreachableError(f"{self.config.entry} in isolation: no start (status {done.returncode})")


def _environment(named: Collection[str]) -> dict[str, str]:
    """Return the supervisor's environment: what is inherited, and what it takes to import the same and fork safely."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name in named or name.startswith("LC_")
    }
    fixed = dict.fromkeys(ONE_THREAD, "1")
    fixed["PYTHONPATH"] = os.pathsep.join(sys.path)
    fixed["PYTHONHASHSEED"] = "0"  # the same task gives the same result in every child of every server
    return kept | fixed


_homes: dict[IsolationConfig, Home] = {}


def prepare(config: IsolationConfig) -> Home:
    """Starts the supervisor for this configuration, if this process and its parents have not.

    Call it in the process that forks the others (gunicorn's `on_starting`): they inherit the home, so that all share
    one supervisor, which ends when the last of them has gone. A single process need not call it.

    Args:
        config: what is isolated.

    Returns:
        The home, the same one for the same configuration.

    Raises:
        ConfigError: the entry cannot be run.
        UnreachableError: the supervisor did not start.
    """
    home = home_of(config)
    home.start()
    return home


def home_of(config: IsolationConfig) -> Home:
    """The home for this configuration, made here or inherited; a new one has no supervisor yet."""
    if config not in _homes:
        _homes.setdefault(config, Home(config))
    return _homes[config]
