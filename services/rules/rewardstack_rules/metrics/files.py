"""Merge the counts of all ended processes into one file per kind of metric.

Without merging, prometheus_client keeps a file per kind and process forever, and reads all files for each scrape. The
gauges of a process are dropped when the process ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

KINDS = ("counter", "histogram")
"""Kinds of metrics whose values are kept, as sums, after a process has ended."""
LOCK = "lock"

_ended: set[int] = set()
"""Ids of ended processes whose counts are not merged yet."""


@contextmanager
def merging_paused(directory: Path) -> Iterator[None]:
    """Prevent merging within the block, so that a scrape counts every value exactly once."""
    with (directory / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def nonempty(files: Iterable[Path]) -> list[Path]:
    """Return the files that exist and are not empty. prometheus_client creates an empty file before it writes."""
    found = []
    for file in files:
        with suppress(FileNotFoundError):
            if file.stat().st_size:
                found.append(file)
    return found


def merge_ended(directory: Path, pid: int) -> None:
    """Merge the counts of a process that has ended into the files of all ended processes.

    This function never waits. During a scrape, it leaves the merging to its next call.

    Args:
        directory: the directory with the counts.
        pid: id of the process.
    """
    mark_process_dead(pid, str(directory))
    _ended.add(pid)
    with (directory / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for kind in KINDS:
            _move([directory / f"{kind}_{ended}.db" for ended in _ended], directory / f"{kind}_ended.db")
    _ended.clear()


def _move(sources: list[Path], target: Path) -> None:
    total = MmapedDict(str(target))
    for source in nonempty(sources):
        for key, value, stamp, _ in MmapedDict.read_all_values_from_file(str(source)):
            total.write_value(key, total.read_value(key)[0] + value, stamp)
        source.unlink()
    total.close()
