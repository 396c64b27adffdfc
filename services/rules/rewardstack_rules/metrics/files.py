"""The counts of processes that have ended: kept, but in one file a kind, however many processes come and go.

prometheus_client leaves a file a kind and process behind, and reads them all at each scrape. What a process had under
way when it ended counts no more.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import mark_process_dead

KINDS = ("counter", "histogram")
"""Kinds of metrics that outlive a process; the values of all of them add up."""
LOCK = "lock"

_ended: set[int] = set()


@contextmanager
def reading(directory: Path) -> Iterator[None]:
    """While this lasts nothing is moved, so that a scrape counts nothing twice and misses nothing."""
    with (directory / LOCK).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def filled(files: Iterable[Path]) -> list[Path]:
    """Return the files that exist and hold counts: prometheus_client makes one empty before it writes to it."""
    found = []
    for file in files:
        with suppress(FileNotFoundError):
            if file.stat().st_size:
                found.append(file)
    return found


def fold(directory: Path, pid: int) -> None:
    """Adds the counts of a process that has ended to those of all that have.

    It never waits: where a scrape is under way it is done at the next call.

    Args:
        directory: where the processes count.
        pid: of the process.
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
    for source in filled(sources):
        for key, value, stamp, _ in MmapedDict.read_all_values_from_file(str(source)):
            total.write_value(key, total.read_value(key)[0] + value, stamp)
        source.unlink()
    total.close()
