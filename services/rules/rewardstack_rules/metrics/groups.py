"""The lowest and highest reward of each recent group (samples of one prompt), in memory that all processes share."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

FILE = "groups"
"""Name of the table's file in the metrics directory, which all processes share."""
EXPIRY = 300.0
"""Seconds without a sample after which a group expires, so that later samples of its prompt are a new group."""
SETS, WAYS = 2048, 8
"""Number of sets, and of groups per set; 16,384 groups in total. The digest of a group selects its set. If the set
is full, a new group replaces the group that has been without a sample for the longest time."""
SLOT = struct.Struct("<16sdddQ")
"""A group: its digest, the time of its last sample, its lowest and highest reward, and its number of samples."""
SIZE = SLOT.size * WAYS


class Groups:
    """A table of groups; thread-safe, and safe between processes that share a directory.

    Args:
        directory: metrics directory that all processes of a server share; empty for a single process.
    """

    def __init__(self, directory: str) -> None:
        self._lock = threading.Lock()
        self._file = -1
        if directory:
            self._file = os.open(Path(directory) / FILE, os.O_RDWR | os.O_CREAT, 0o600)
            os.posix_fallocate(self._file, 0, SETS * SIZE)  # a later write to a full disk would kill the process
        self._memory = mmap.mmap(self._file, SETS * SIZE)

    def add(self, groups: Mapping[bytes, Sequence[float]]) -> tuple[int, int]:
        """Add rewards to groups.

        Args:
            groups: rewards by the group's digest of 16 bytes.

        Returns:
            The number of groups that reach two samples in this call, and the number of groups whose rewards differ for
            the first time in this call.
        """
        with self._locked():
            now = time.monotonic()
            found = [self._add(digest, rewards, now) for digest, rewards in groups.items()]
        return sum(started for started, _ in found), sum(spread for _, spread in found)

    def _add(self, digest: bytes, rewards: Sequence[float], now: float) -> tuple[bool, bool]:
        start = int.from_bytes(digest[:4], "big") % SETS * SIZE
        slots = [*SLOT.iter_unpack(self._memory[start : start + SIZE])]
        at = next((at for at, slot in enumerate(slots) if slot[0] == digest), None)
        if at is None:
            at = min(range(WAYS), key=lambda at: slots[at][1])
            _, seen, low, high, count = digest, 0.0, 0.0, 0.0, 0
        else:
            _, seen, low, high, count = slots[at]
        if not count or now - seen > EXPIRY:
            low, high, count = rewards[0], rewards[0], 0
        lowest, highest = min(low, *rewards), max(high, *rewards)
        SLOT.pack_into(self._memory, start + at * SLOT.size, digest, now, lowest, highest, count + len(rewards))
        return count < 2 <= count + len(rewards), low == high and lowest < highest

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the table's lock, which the system releases if the process dies."""
        with self._lock:
            if self._file < 0:
                yield
                return
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)
