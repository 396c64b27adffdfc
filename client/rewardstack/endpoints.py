"""Reads the file that `REWARDSTACK_ENDPOINTS` names: URLs and keys of servers that may move to other machines.

The stack (the servers that `apptainer/stack.sh up` starts) replaces the whole file every few seconds, as a heartbeat.
Each check opens the file again, because on shared storage an open file does not show changes by other machines. This
module has no thread and no lock, so forks are safe.
"""

from __future__ import annotations

import json
import logging
import math
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack.errors import SettingsError
from rewardstack_settings.kinds import InvalidText
from rewardstack_settings.setting import InvalidSetting, Setting

VARIABLE = "REWARDSTACK_ENDPOINTS"
VERSION = 1
"""Version of the file's format."""
CHECK_INTERVAL = 1.0
"""Seconds between two checks of the file."""
STALE_AFTER = 60.0
"""Seconds without a change of the file after which a warning is logged."""
MAX_WRITTEN = 1e11
"""Upper bound of the field `written`: the time of the last heartbeat, in seconds since the epoch."""
MAX_BYTES = 64 * 2**10
"""Maximum size of the file, in bytes."""
OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
"""The permissions of the group and of other users; the file must grant none of them."""

log = logging.getLogger(__name__)


class _Content(NamedTuple):
    """The last valid content of the file.

    Args:
        data: the bytes of the file; each heartbeat changes them (field `written`).
        servers: value of each variable that the file may set, by name.
    """

    data: bytes
    servers: Mapping[str, Any]


class EndpointsFile:
    """Reads the current servers from a file.

    Args:
        path: the file's path.
        variables: the variables that the file may set, by name.
    """

    def __init__(self, path: Path, variables: Mapping[str, Setting]) -> None:
        self._path = path.absolute()
        self._variables = variables
        self._last: _Content | None = None
        self._checked_at = self._changed_at = -math.inf
        self._is_invalid = False
        self._is_stale = False

    def servers(self) -> Mapping[str, Any]:
        """Return the value of each variable that the file may set, by name.

        The file is read at most once every `CHECK_INTERVAL` seconds.

        Raises:
            SettingsError: the file is invalid, and no valid content was read before.
        """
        last, now = self._last, time.monotonic()
        if last is None or now >= self._checked_at + CHECK_INTERVAL:
            self._checked_at = now
            content = self._check_file(last)
            self._warn_if_stale(last is None or content.data != last.data, now)
            last = self._last = content
        return last.servers

    def _check_file(self, last: _Content | None) -> _Content:
        try:
            data = _read_bytes(self._path)
            content = last if last is not None and data == last.data else _parse(data, self._variables)
        except InvalidText as error:
            message = f"{VARIABLE}: {self._path} {error}"
            if last is None:
                raise SettingsError(message, VARIABLE) from None
            if not self._is_invalid:
                log.warning("%s; using its last valid content", message)
            self._is_invalid = True
            return last
        self._is_invalid = False
        if last is not None and content.servers != last.servers:
            changed = [name for name, value in content.servers.items() if value != last.servers[name]]
            log.info("%s: %s has changed: %s", VARIABLE, self._path, ", ".join(changed))
        return content

    def _warn_if_stale(self, has_changed: bool, now: float) -> None:
        """Warn if the file has not changed for `STALE_AFTER` seconds.

        The field `written` is not used, because the clocks of machines may differ.
        """
        if has_changed:
            self._changed_at = now
        age = now - self._changed_at
        if age > STALE_AFTER and not self._is_stale:
            log.warning("%s: %s has not been written for %.0f s: is the job still running?", VARIABLE, self._path, age)
        self._is_stale = age > STALE_AFTER


def _parse(data: bytes, variables: Mapping[str, Setting]) -> _Content:
    """Parse the bytes of a file; raise InvalidText if they are invalid."""
    try:
        record: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"is not JSON: {error}") from None
    fields = record if isinstance(record, dict) else {}
    version, written, servers = (fields.get(name) for name in ("version", "written", "servers"))
    if type(version) is not int or version != VERSION:
        raise InvalidText(f"does not have `version` {VERSION}; use the same release for trainer and stack")
    if not isinstance(written, int | float) or isinstance(written, bool) or not 0 <= written < MAX_WRITTEN:
        raise InvalidText("has an invalid `written`, which must be seconds since the epoch")
    if not isinstance(servers, dict) or not all(isinstance(text, str) for text in servers.values()):
        raise InvalidText("has invalid `servers`, which must be an object with string values")
    if unknown := [name for name in servers if name not in variables]:
        raise InvalidText(f"sets the unknown variable {unknown[0][:80]!r}; available: {', '.join(variables)}")
    try:
        return _Content(data, {name: setting.read(servers.get(name, "")) for name, setting in variables.items()})
    except InvalidSetting as error:
        raise InvalidText(f"is malformed: {error}") from None


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, which must belong to the user and be closed to other users.

    Raises:
        InvalidText: the file is missing, unreadable, too large, or not private (see `_check`).
    """
    try:
        with open(path, "rb", opener=_open) as file:
            _check(path, os.fstat(file.fileno()))
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        why = "`apptainer/stack.sh up` or a Slurm job writes it; start that first, or correct the path"
        raise InvalidText(f"does not exist: {why}") from None
    except OSError as error:
        raise InvalidText(
            f"cannot be read: {error.strerror}; set the variable to the file that the stack writes"
        ) from None
    if len(data) > MAX_BYTES:
        raise InvalidText(f"is larger than {MAX_BYTES} bytes; set the variable to the file that the stack writes")
    return data


def _open(path: str, flags: int) -> int:
    """Open a file without blocking, even if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check(path: Path, status: os.stat_result) -> None:
    """Raise InvalidText if a file is not regular, has another owner, or is open to other users.

    The file must be private, because it has API keys and says where samples are sent.
    """
    if not stat.S_ISREG(status.st_mode):
        raise InvalidText("is not a regular file; set the variable to the file that the stack writes")
    if status.st_uid != os.geteuid():
        raise InvalidText(f"belongs to user {status.st_uid}, not to you; start the stack as yourself")
    if status.st_mode & OTHER_USERS:
        raise InvalidText(f"is open to other users (mode {stat.S_IMODE(status.st_mode):o}); run `chmod 600 {path}`")
