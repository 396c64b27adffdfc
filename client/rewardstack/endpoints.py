"""The file that `REWARDSTACK_ENDPOINTS` names: where the servers of a stack are that runs elsewhere and may move.

Its writer replaces it as a whole, every few seconds. It is opened anew for each look: on shared storage only that shows
what another machine has written. There is neither a thread nor a lock, so that a fork is of no concern; threads that
look at the same moment find the same.
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
LOOK = 1.0
"""Seconds from one look at the file to the next."""
STALE = 60.0
"""Seconds without another heartbeat after which one asks whether anybody writes the file any more."""
LATEST = 1e11
MOST_BYTES = 64 * 2**10
OTHERS = stat.S_IRWXG | stat.S_IRWXO

log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """What the file said last.

    Args:
        data: its bytes, which each heartbeat changes.
        servers: values of the variables that it may set, by name.
    """

    data: bytes
    servers: Mapping[str, Any]


class EndpointsFile:
    """The servers that a file names, now.

    Args:
        path: of the file.
        variables: that it may set, by name.
    """

    def __init__(self, path: Path, variables: Mapping[str, Setting]) -> None:
        self._path = path.absolute()
        self._variables = variables
        self._known: _Known | None = None
        self._looked_at = self._beaten_at = -math.inf
        self._is_troubled = False
        self._is_stale = False

    def servers(self) -> Mapping[str, Any]:
        """The values of all variables that the file may set, by name; looked for in it once in `LOOK` seconds at most.

        Raises:
            SettingsError: the file cannot be used, and never could in this process; later, what it said last holds.
        """
        known, now = self._known, time.monotonic()
        if known is None or now >= self._looked_at + LOOK:
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
                log.warning("%s; the servers that it named before hold until it can be used again", message)
            self._is_troubled = True
            return known
        self._is_troubled = False
        if known is not None and found.servers != known.servers:
            changed = [name for name, value in found.servers.items() if value != known.servers[name]]
            log.info("%s: %s has changed: %s", VARIABLE, self._path, ", ".join(changed))
        return found

    def _listen(self, beats: bool, now: float) -> None:
        """Warns where the heartbeat has ceased: clocks of machines differ, so that it is its changes that are timed."""
        if beats:
            self._beaten_at = now
        age = now - self._beaten_at
        if age > STALE and not self._is_stale:
            log.warning("%s: %s has not been written for %.0f s: does the job run?", VARIABLE, self._path, age)
        self._is_stale = age > STALE


def _read(data: bytes, variables: Mapping[str, Setting]) -> _Known:
    """What the bytes of a file say; raises as `_content` does."""
    try:
        record: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"is not JSON: {error}") from None
    found = record if isinstance(record, dict) else {}
    version, written, texts = (found.get(name) for name in ("version", "written", "servers"))
    if type(version) is not int or version != VERSION:
        raise Refused(f"has no `version` that is {VERSION}; trainer and stack need the same release")
    if not isinstance(written, int | float) or isinstance(written, bool) or not 0 <= written < LATEST:
        raise Refused("has no `written` that is a number of seconds since the epoch")
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise Refused("has no `servers` that is an object of texts")
    if unknown := [name for name in texts if name not in variables]:
        raise Refused(f"names {unknown[0][:80]!r}, which is not known; known: {', '.join(variables)}")
    try:
        return _Known(data, {name: setting.read(texts.get(name, "")) for name, setting in variables.items()})
    except Malformed as error:
        raise Refused(f"is malformed: {error}") from None


def _content(path: Path) -> bytes:
    """The bytes of a file that is the user's own, and nobody else's to read or write.

    Raises:
        Refused: it is not, is not there, or is too large.
    """
    try:
        with open(path, "rb", opener=_open) as file:
            _check(path, os.fstat(file.fileno()))
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        why = "`apptainer/stack.sh up` or a Slurm job writes it; start that first, or correct the path"
        raise Refused(f"is not there: {why}") from None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}; name the file that the stack writes") from None
    if len(data) > MOST_BYTES:
        raise Refused(f"is larger than {MOST_BYTES} bytes; name the file that the stack writes")
    return data


def _open(path: str, flags: int) -> int:
    """Opens a pipe, too, without waiting for its writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check(path: Path, found: os.stat_result) -> None:
    """Returns where a file may be believed, for its servers are sent samples and keys; raises as `_content` does."""
    if not stat.S_ISREG(found.st_mode):
        raise Refused("is not a regular file; name the file that the stack writes")
    if found.st_uid != os.geteuid():
        raise Refused(f"belongs to user {found.st_uid}, not to you; start the stack as yourself")
    if found.st_mode & OTHERS:
        raise Refused(f"is open to other users (mode {stat.S_IMODE(found.st_mode):o}); run `chmod 600 {path}`")
