"""Reads the file in `REWARDSTACK_ENDPOINTS`: the URLs and keys of a stack on other machines, which may move.

The stack replaces the whole file every few seconds. Each check opens the file again, because on shared storage only
that shows changes by other machines. There is no thread and no lock, so forks are safe; concurrent checks get the
same result.
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
from rewardstack_settings.kinds import Refused
from rewardstack_settings.setting import Malformed, Setting

VARIABLE = "REWARDSTACK_ENDPOINTS"
VERSION = 1
"""Version of the file's format."""
CHECK_INTERVAL = 1.0
"""Seconds between two checks of the file."""
STALE = 60.0
"""Seconds without a heartbeat (any change of the file) after which a warning is logged."""
LATEST = 1e11
"""Upper bound of the field `written`, in seconds since the epoch."""
MOST_BYTES = 64 * 2**10
"""Maximum size of the file, in bytes."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""Permissions of users other than the owner, which the file must not have."""

log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """The last content of the file.

    Args:
        data: the bytes of the file, which change with each heartbeat.
        servers: value of each variable that the file may set, by name.
    """

    data: bytes
    servers: Mapping[str, Any]


class EndpointsFile:
    """The current servers in a file.

    Args:
        path: the file's path.
        variables: the variables that the file may set, by name.
    """

    def __init__(self, path: Path, variables: Mapping[str, Setting]) -> None:
        self._path = path.absolute()
        self._variables = variables
        self._known: _Known | None = None
        self._looked_at = self._beaten_at = -math.inf
        self._is_troubled = False
        self._is_stale = False

    def servers(self) -> Mapping[str, Any]:
        """Return the values of all variables in the file, by name; read it at most every `CHECK_INTERVAL` seconds.

        Raises:
            SettingsError: the file is invalid, and no earlier content is known.
        """
        known, now = self._known, time.monotonic()
        if known is None or now >= self._looked_at + CHECK_INTERVAL:
            self._looked_at = now
            found = self._look(known)
            self._listen(known is None or found.data != known.data, now)
            known = self._known = found
        return known.servers

    def _look(self, known: _Known | None) -> _Known:
        try:
            data = _content(self._path)
            found = known if known is not None and data == known.data else _read(data, self._variables)
        except Refused as refused:
            message = f"{VARIABLE}: {self._path} {refused}"
            if known is None:
                raise SettingsError(message, VARIABLE) from None
            if not self._is_troubled:
                log.warning("%s; using its last valid content", message)
            self._is_troubled = True
            return known
        self._is_troubled = False
        if known is not None and found.servers != known.servers:
            changed = [name for name, value in found.servers.items() if value != known.servers[name]]
            log.info("%s: %s has changed: %s", VARIABLE, self._path, ", ".join(changed))
        return found

    def _listen(self, beats: bool, now: float) -> None:
        """Warn if the file has not changed for `STALE` seconds; `written` is not used, because clocks may differ."""
        if beats:
            self._beaten_at = now
        age = now - self._beaten_at
        if age > STALE and not self._is_stale:
            log.warning("%s: %s has not been written for %.0f s: does the job run?", VARIABLE, self._path, age)
        self._is_stale = age > STALE


def _read(data: bytes, variables: Mapping[str, Setting]) -> _Known:
    """Parse the bytes of a file; raise as `_content` does."""
    try:
        record: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"is not JSON: {error}") from None
    found = record if isinstance(record, dict) else {}
    version, written, texts = (found.get(name) for name in ("version", "written", "servers"))
    if type(version) is not int or version != VERSION:
        raise Refused(f"does not have `version` {VERSION}; use the same release for trainer and stack")
    if not isinstance(written, int | float) or isinstance(written, bool) or not 0 <= written < LATEST:
        raise Refused("has an invalid `written`, which must be seconds since the epoch")
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise Refused("has invalid `servers`, which must be an object with string values")
    if unknown := [name for name in texts if name not in variables]:
        raise Refused(f"names {unknown[0][:80]!r}, which is not known; available: {', '.join(variables)}")
    try:
        return _Known(data, {name: setting.read(texts.get(name, "")) for name, setting in variables.items()})
    except Malformed as error:
        raise Refused(f"is malformed: {error}") from None


def _content(path: Path) -> bytes:
    """Return the bytes of a file that belongs to the user and that no other user can read or write.

    Raises:
        Refused: the file is missing, too large, or does not have these permissions.
    """
    try:
        with open(path, "rb", opener=_open) as file:
            _check(path, os.fstat(file.fileno()))
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        why = "`apptainer/stack.sh up` or a Slurm job writes it; start that first, or correct the path"
        raise Refused(f"does not exist: {why}") from None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}; name the file that the stack writes") from None
    if len(data) > MOST_BYTES:
        raise Refused(f"is larger than {MOST_BYTES} bytes; name the file that the stack writes")
    return data


def _open(path: str, flags: int) -> int:
    """Open a file without blocking, even if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check(path: Path, found: os.stat_result) -> None:
    """Raise Refused if another user may have written the file: samples and keys are sent to the servers in it."""
    if not stat.S_ISREG(found.st_mode):
        raise Refused("is not a regular file; name the file that the stack writes")
    if found.st_uid != os.geteuid():
        raise Refused(f"belongs to user {found.st_uid}, not to you; start the stack as yourself")
    if found.st_mode & OTHERS:
        raise Refused(f"is open to other users (mode {stat.S_IMODE(found.st_mode):o}); run `chmod 600 {path}`")
