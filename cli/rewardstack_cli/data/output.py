"""Write rows with their scores to a score file, one row per line; a later run can continue the file.

IN is the input file, OUT the output file. If OUT is JSONL, it is the score file. If OUT is parquet, the score file is
`OUT.partial`, which is JSONL; when all rows are done, OUT is written from IN and `OUT.partial`.

Each line begins with fields that identify its row of IN, and ends with the fields of the score. In a JSONL OUT, a line
begins with all fields of the row, except fields that have the name of a score field. In `OUT.partial`, a line begins
with a digest of the row.
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
from rewardstack_cli.data.rows import SCORE_FIELDS, Row, input_fields, score_fields, to_json
from rewardstack_cli.progress import MISSING_STATUSES, Tally

SYNC_INTERVAL = 1.0
"""Minimum seconds between two syncs to disk. A crash of the machine can lose the rows that were appended after the
last sync."""

log = logging.getLogger(__name__)

LinePrefix = Callable[[dict[str, Any]], dict[str, Any]]
"""Function that returns the fields that identify a row of IN; the row's line begins with them."""


def row_digest(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the field `row`, a digest of the row; in `OUT.partial`, it takes the place of the row's fields."""
    return {"row": blake2b(to_json(input_fields(fields)), digest_size=16).hexdigest()}


class ScoreFile:
    """A score file: one line for each row that is done, with or without a score, in the order of IN.

    Attributes:
        path: path of the file.
        kept_rows: number of rows whose lines are from an earlier run, as counted by `match_next`.
        tally: counts of the rows in the file.

    Args:
        path: path of the file; created if it does not exist.
        line_prefix: returns the fields with which a row's line begins.
        start_over: whether to discard the rows in the file.

    Raises:
        RequestError: another run is writing the file, or the file cannot be opened.
    """

    def __init__(self, path: Path, line_prefix: LinePrefix = input_fields, start_over: bool = False) -> None:
        self.path = path
        self.kept_rows = 0
        self.tally = Tally()
        self._line_prefix = line_prefix
        self._size = 0
        self._synced_at = time.monotonic()
        self._replaced_files: list[BufferedRandom] = []
        self._file = _open(path)
        if start_over:
            self._file.truncate(0)

    def __enter__(self) -> ScoreFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not os.fstat(self._file.fileno()).st_size:
            self.path.unlink(missing_ok=True)  # after an error, remove a file without rows
        for file in (*self._replaced_files, self._file):
            file.close()

    def match_next(self, row: Row) -> None:
        """Read the next line, if there is one, and check that it belongs to `row`, the next row of IN.

        An incomplete last line is accepted if it can be the beginning of the row's line, but the row is not counted.

        Raises:
            RequestError: the line belongs to another row, or is damaged.
        """
        line = self._file.readline()
        if not line:
            return
        start = to_json(self._line_prefix(row.fields))[:-1] + b", "
        if not line.endswith(b"\n"):
            partial = line.rstrip(b"\0")  # after a crash, the file may end with zero bytes
            if not (partial.startswith(start) or start.startswith(partial)):
                raise self._mismatch_error(row)
            return
        added = _parse_score_fields(line, start)
        if added is None:
            raise self._mismatch_error(row)
        self.tally.add(**added)
        self.kept_rows += 1
        self._size = self._file.tell()

    def _mismatch_error(self, row: Row) -> RequestError:
        return RequestError(
            f"{self.path} was written from another IN, or is damaged: it differs at {row.location}; "
            "name another OUT, or start over with --force, which overwrites it",
            "-o",
        )

    def truncate_incomplete_line(self) -> None:
        """Remove an incomplete last line; must be called after `match_next` has received all rows of IN.

        Raises:
            RequestError: the file has more lines than IN has rows.
        """
        if self._file.readline():
            raise RequestError(f"{self.path} has more rows than IN; name another OUT, or start over with --force", "-o")
        self._file.seek(self._size)
        self._file.truncate()

    def append(self, rows: Iterable[Row], scores: Iterable[Score]) -> None:
        """Append rows with their scores, and flush the file.

        If there are fewer scores than rows, only the first rows, one for each score, are appended. Scores with the
        status `failed` or `unscored` are appended, too.
        """
        lines = []
        for row, score in zip(rows, scores, strict=False):
            added = score_fields(score)
            lines.append(to_json({**self._line_prefix(row.fields), **added}) + b"\n")
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
                if _parse_missing(line):
                    yield row

    @contextmanager
    def rewrite(self) -> Iterator[Rewriter]:
        """Yield a `Rewriter` for rows without a score; replace the file on exit, also after an exception."""
        path = self.path.with_name(self.path.name + ".retry")
        with self.path.open("rb") as old:
            rewriter = Rewriter(old, _open(path), self._line_prefix, self.tally)
            try:
                yield rewriter
            finally:
                # Keep the replaced file open, so that it stays locked. Otherwise, another run that has already opened
                # this file could get the lock, and would write to a file that no longer has a name.
                self._replaced_files.append(self._file)
                self._file = rewriter.finish()
                path.replace(self.path)

    def read_scores(self) -> Iterator[dict[str, Any]]:
        """Yield the score fields of each line; the file must be an `OUT.partial`."""
        self._file.seek(0)
        for line in self._file:
            fields = json.loads(line)
            del fields["row"]
            yield fields


class Rewriter:
    """Copies a score file, and replaces the lines of rows without a score by lines with new scores.

    Args:
        old: the existing score file.
        new: the file to write.
        line_prefix: returns the fields with which a row's line begins.
        tally: counts of all lines; `put` updates it.
    """

    def __init__(self, old: BinaryIO, new: BufferedRandom, line_prefix: LinePrefix, tally: Tally) -> None:
        self._old, self._new, self._line_prefix, self._tally = old, new, line_prefix, tally
        new.truncate(0)

    def put(self, rows: Iterable[Row], scores: Iterable[Score]) -> None:
        """Replace the old line of each row by a line with its new score, and copy the lines before it.

        Args:
            rows: the next rows that `rows_without_score` yields.
            scores: their new scores.
        """
        for row, score in zip(rows, scores, strict=False):
            for line in self._old:
                if fields := _parse_missing(line):
                    self._tally.remove_missing(**fields)
                    break
                self._new.write(line)
            added = score_fields(score)
            self._new.write(to_json({**self._line_prefix(row.fields), **added}) + b"\n")
            self._tally.add(**added)

    def finish(self) -> BufferedRandom:
        """Copy the remaining lines and return the file after syncing it to disk."""
        shutil.copyfileobj(self._old, self._new)
        self._new.flush()
        os.fsync(self._new.fileno())
        return self._new


def _parse_missing(line: bytes) -> dict[str, Any]:
    """Return the score fields of a line if its status is `failed` or `unscored`, else an empty dict."""
    if b'"failed"' not in line and b'"unscored"' not in line:
        return {}
    fields = json.loads(line)
    return {name: fields[name] for name in SCORE_FIELDS} if fields["status"] in MISSING_STATUSES else {}


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


def _parse_score_fields(line: bytes, start: bytes) -> dict[str, Any] | None:
    """Return the score fields of a line that begins with `start`; None if it begins differently, or is damaged."""
    if not line.startswith(start):
        return None
    try:
        fields = json.loads(b"{" + line[len(start) :])
    except ValueError:
        return None
    return fields if fields.keys() == {*SCORE_FIELDS} else None
