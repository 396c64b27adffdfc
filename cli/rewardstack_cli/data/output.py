"""The score file: scores are appended to it, one row per line; an interrupted run continues at its end.

A line is the row of IN (the input file) followed by the fields of the score, so the beginning of a line shows
whether it belongs to a row. If OUT, the output file, is parquet, the digest of the row replaces the row.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import BufferedRandom
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from rewardstack.errors import RequestError
from rewardstack.score import Score
from rewardstack_cli.data.rows import ADDED, Row, added_fields, own_fields, to_json
from rewardstack_cli.progress import MISSING, Tally

SYNC_INTERVAL = 1.0
"""Seconds between two syncs to disk, and so the most work that a crash of the machine can lose."""

log = logging.getLogger(__name__)

Identity = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns the fields with which the line of a row of IN begins."""


def digest_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the row's digest as the field `row`, which replaces the row in a score file."""
    return {"row": blake2b(to_json(own_fields(fields)), digest_size=16).hexdigest()}


class ScoreFile:
    """Scored rows, in order.

    Attributes:
        path: path of the file.
        kept: number of rows at the start of IN whose lines are kept.
        tally: counts of the rows in the file.

    Args:
        path: path of the JSONL file; created if it does not exist.
        identity: returns the fields with which the line of a row of IN begins.
        start_over: whether to discard the rows in the file.

    Raises:
        RequestError: another run is writing the file, or the file cannot be opened.
    """

    def __init__(self, path: Path, identity: Identity = own_fields, start_over: bool = False) -> None:
        self.path = path
        self.kept = 0
        self.tally = Tally()
        self._identity = identity
        self._size = 0
        self._synced_at = time.monotonic()
        self._replaced: list[BufferedRandom] = []
        self._file = _open(path)
        if start_over:
            self._file.truncate(0)

    def __enter__(self) -> ScoreFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (*self._replaced, self._file):
            file.close()

    def compare(self, row: Row) -> None:
        """Read the next line, if there is one, as the score of `row`, which is the next row of IN.

        Raises:
            RequestError: the line belongs to another row.
        """
        line = self._file.readline()
        if not line:
            return
        start = to_json(self._identity(row.fields))[:-1] + b", "
        if not line.endswith(b"\n"):
            cut = line.rstrip(b"\0")
            if not (cut.startswith(start) or start.startswith(cut)):
                raise self._foreign(row)
            return
        added = _added(line, start)
        if added is None:
            raise self._foreign(row)
        self.tally.add(**added)
        self.kept += 1
        self._size = self._file.tell()

    def _foreign(self, row: Row) -> RequestError:
        return RequestError(
            f"{self.path} is not a score file of this IN: it differs at {row.place}; "
            "name another OUT, or start over with --force, which overwrites it",
            "-o",
        )

    def resume(self) -> None:
        """Cut off an incomplete last line; call this after `compare` has seen all of IN.

        Raises:
            RequestError: the file has more lines than IN has rows.
        """
        if self._file.readline():
            raise RequestError(f"{self.path} has more rows than IN; name another OUT, or start over with --force", "-o")
        self._file.seek(self._size)
        self._file.truncate()

    def append(self, rows: Iterable[Row], scores: Iterable[Score]) -> None:
        """Write the rows that have a score; after this returns, they survive a crash of the process."""
        lines = []
        for row, score in zip(rows, scores, strict=False):
            added = added_fields(score)
            lines.append(to_json({**self._identity(row.fields), **added}) + b"\n")
            self.tally.add(**added)
        self._file.write(b"".join(lines))
        self._file.flush()
        if time.monotonic() - self._synced_at > SYNC_INTERVAL:
            os.fsync(self._file.fileno())
            self._synced_at = time.monotonic()

    def rows_without_score(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of IN whose line has the status `failed` or `unscored`."""
        with self.path.open("rb") as lines:
            for row, line in zip(rows, lines, strict=False):
                if _status_without_score(line):
                    yield row

    @contextmanager
    def rewriting(self) -> Iterator[Rewriter]:
        """Yield a `Rewriter` for rows without a score; replace the file on exit, also after an exception."""
        path = self.path.with_name(self.path.name + ".retry")
        with self.path.open("rb") as old:
            rewriter = Rewriter(old, _open(path), self._identity, self.tally)
            try:
                yield rewriter
            finally:
                self._replaced.append(self._file)  # keep it open, so that its lock is held until the end
                self._file = rewriter.finish()
                path.replace(self.path)

    def added(self) -> Iterator[dict[str, Any]]:
        """Yield the fields that the scores add to their rows, for a file whose lines have digests of rows."""
        self._file.seek(0)
        for line in self._file:
            fields = json.loads(line)
            del fields["row"]
            yield fields


class Rewriter:
    """Copies a score file, with new scores for rows without a score.

    Args:
        old: the existing score file.
        new: the file to write.
        identity: returns the fields with which the line of a row of IN begins.
        tally: counts of all lines; updated.
    """

    def __init__(self, old: BinaryIO, new: BufferedRandom, identity: Identity, tally: Tally) -> None:
        self._old, self._new, self._identity, self._tally = old, new, identity, tally
        new.truncate(0)

    def put(self, rows: Iterable[Row], scores: Iterable[Score]) -> None:
        """Write the next rows without a score with their new scores, after copying the lines before them."""
        for row, score in zip(rows, scores, strict=False):
            for line in self._old:
                if status := _status_without_score(line):
                    self._tally.statuses[status] -= 1
                    break
                self._new.write(line)
            added = added_fields(score)
            self._new.write(to_json({**self._identity(row.fields), **added}) + b"\n")
            self._tally.add(**added)

    def finish(self) -> BufferedRandom:
        """Copy the remaining lines and return the file after syncing it to disk."""
        shutil.copyfileobj(self._old, self._new)
        self._new.flush()
        os.fsync(self._new.fileno())
        return self._new


def _status_without_score(line: bytes) -> str:
    """Return the status of a line if it is `failed` or `unscored`; empty for any other status."""
    if b'"failed"' not in line and b'"unscored"' not in line:
        return ""
    status = json.loads(line)["status"]
    return status if status in MISSING else ""


def _open(path: Path) -> BufferedRandom:
    if path.exists() and not path.is_file():
        raise RequestError(f"{path} is not a file", "-o")
    try:
        path.touch()
        file = path.open("r+b")
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", "-o") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RequestError(f"{path}: another run is writing it", "-o") from error
    except OSError:
        log.warning("%s: its file system has no locks; make sure that no other run writes to it", path)
    return file


def _added(line: bytes, start: bytes) -> dict[str, Any] | None:
    """Return the score fields of a line that begins with `start`; None if the line does not, or is damaged."""
    if not line.startswith(start):
        return None
    try:
        fields = json.loads(b"{" + line[len(start) :])
    except ValueError:
        return None
    return fields if fields.keys() == {*ADDED} else None
