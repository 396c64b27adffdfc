"""Start the supervisor, which ends when the last process that uses it ends."""

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

from rewardstack.cause import Cause
from rewardstack.errors import ConfigError, RouteError, SettingsError, UnreachableError
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.supervisor import EXIT_BROKEN, SOCKET_NAME
from rewardstack_rules.process import import_path, module_command

START_SECONDS = 60
"""Timeout for the supervisor to start and load the entry, in seconds."""

SOCKET_PATH_BYTES = 107
"""Maximum length of the path of a Unix socket on Linux, in bytes."""

INHERITED = frozenset(
    {
        *("PATH", "HOME", "TMPDIR", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8"),
    }
)
"""Environment variables that supervisor and children inherit, besides `LC_*` and `IsolationConfig.variables`."""

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

USERS_ERRORS: dict[str, type[ConfigError]] = {"RouteError": RouteError, "SettingsError": SettingsError}
"""Exceptions about the user's files and settings, by class name. They are raised with their messages unchanged."""


class SupervisorHandle:
    """Starts one supervisor, and keeps it alive while this process or one of its forks lives.

    The supervisor has a private directory and a lifeline, which is a pipe. This process and all its forks hold the
    write end; the supervisor holds the read end. When the last of these processes ends, the supervisor sees the end of
    the pipe, exits and removes the directory. The first start creates the directory in TMPDIR, or in /tmp if TMPDIR is
    too long for the path of a socket.

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
        self._lifeline, self._write_end = os.pipe()

    def start(self) -> None:
        """Start the supervisor unless it is running. Return once it accepts tasks.

        Raises:
            ConfigError: the entry cannot be run; the message has the reason.
            UnreachableError: the supervisor died while it started, or did not start within `START_SECONDS`.
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
        """Close the lifeline in this process, and forget this handle, so that `supervisor_handle` creates a new one."""
        os.close(self._write_end)
        os.close(self._lifeline)
        if _handles.get(self.config) is self:
            del _handles[self.config]

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Create the directory, and lock it against other processes within the block."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        with open(self.directory / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # closing the file is not enough if a forked process has it open

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
            raise UnreachableError(
                f"supervisor of {self.config.entry}: it did not start within {START_SECONDS} s",
                cause=Cause.ISOLATION_DOWN,
            ) from error
        message = done.stdout.decode(errors="replace").strip()
        kind, _, why = message.partition(": ")
        if done.returncode == EXIT_BROKEN and kind in USERS_ERRORS:
            raise USERS_ERRORS[kind](why)
        if done.returncode == EXIT_BROKEN:
            raise ConfigError(f"entry: {self.config.entry} cannot be run: {message}", "entry")
        if done.returncode != 0:
            raise UnreachableError(
                f"supervisor of {self.config.entry}: it did not start (exit status {done.returncode})",
                cause=Cause.ISOLATION_DOWN,
            )


def _environment(additional: Collection[str]) -> dict[str, str]:
    """Return the environment variables of the supervisor.

    Besides inherited variables, they include this process's import path and variables that keep libraries from starting
    threads.

    Args:
        additional: names of variables to inherit besides `INHERITED`.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name in additional or name.startswith("LC_")
    }
    fixed = dict.fromkeys(ONE_THREAD, "1")
    fixed["PYTHONPATH"] = import_path()
    fixed["PYTHONHASHSEED"] = "0"  # so that a task has the same result in every child of every server
    return inherited | fixed


_handles: dict[IsolationConfig, SupervisorHandle] = {}


def start_supervisor(config: IsolationConfig) -> SupervisorHandle:
    """Start the supervisor for this configuration, unless this process or a parent has started it.

    Call this in the process that forks the server processes (gunicorn's `on_starting`). The server processes
    inherit the handle and share one supervisor, which ends when the last of these processes ends. A server with a
    single process need not call this function.

    Args:
        config: the entry and the limits.

    Returns:
        The handle; equal configurations have the same handle.

    Raises:
        ConfigError: the entry cannot be run.
        UnreachableError: the supervisor did not start.
    """
    handle = supervisor_handle(config)
    handle.start()
    return handle


@contextlib.contextmanager
def replace_handles(configs: Collection[IsolationConfig]) -> Iterator[None]:
    """Let the block start new supervisors for these configurations; then close the old handles.

    If the block raises, the new handles are closed, and the old ones stay.
    """
    old = {config: _handles.pop(config) for config in configs if config in _handles}
    try:
        yield
    except BaseException:
        for config in configs:
            supervisor_handle(config).close()
        _handles.update(old)
        raise
    for handle in old.values():
        handle.close()


def supervisor_handle(config: IsolationConfig) -> SupervisorHandle:
    """Return the handle for this configuration. Create it if needed, but do not start a supervisor."""
    if config not in _handles:
        _handles.setdefault(config, SupervisorHandle(config))
    return _handles[config]
