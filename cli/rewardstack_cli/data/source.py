"""Read a data file row by row, with one row (JSONL) or one batch (parquet) in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rewardstack.core.jsonl import number_lines, read_pieces
from rewardstack.errors import RequestError
from rewardstack_cli.data import parquet
from rewardstack_cli.data.rows import Row

JSONL = ".jsonl"
PARQUET = ".parquet"
EXPECTED = "JSON Lines: one JSON object in each line, in UTF-8"


def is_parquet(path: Path, argument: str) -> bool:
    """Return whether `path` names a parquet file rather than a JSONL file.

    Args:
        path: path of a data file.
        argument: name of the command-line argument, for the error message.

    Raises:
        RequestError: `path` ends neither in `.jsonl` nor in `.parquet`.
        SettingsError: `path` names a parquet file, and pyarrow (extra `data`) is not installed.
    """
    if path.suffix == PARQUET:
        parquet.require_pyarrow()
        return True
    if path.suffix != JSONL:
        raise RequestError(f"{argument}: {path} ends neither in {JSONL} nor in {PARQUET}", argument)
    return False


def check_output(path: Path, argument: str) -> None:
    """Raise `RequestError` if no file can be written at `path`: `path` is a folder, or its parent does not exist.

    Args:
        path: path of the file to write.
        argument: name of the command-line argument, for the error message.
    """
    if path.is_dir():
        raise RequestError(f"{argument}: {path} is a folder; name a file", argument)
    if not path.parent.is_dir():
        raise RequestError(f"{argument}: there is no folder {path.parent}; make it, or name another file", argument)


class Source:
    """The data file to be scored.

    Args:
        path: path of the file, which ends in `.jsonl` or `.parquet`.
        columns: columns of a parquet file to read, if it has them; None for all.

    Raises:
        RequestError: there is no such file, or its suffix is unknown.
        SettingsError: the file is parquet, and pyarrow (extra `data`) is not installed.
    """

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        self.path = path
        self._columns = columns
        self.is_parquet = is_parquet(path, "IN")
        if not path.is_file():
            raise RequestError(f"IN: there is no file {path}", "IN")

    def rows(self, start: int = 0) -> Iterator[Row]:
        """Return the rows from index `start` on; blank lines of JSONL are skipped.

        Raises:
            RequestError: a row is malformed; the message names file and position.
        """
        if self.is_parquet:
            rows = enumerate(parquet.read_rows(self.path, start, self._columns), start + 1)
            return (Row(self.path, f"row {number}", fields) for number, fields in rows)
        return self._read_lines(start)

    def no_rows_error(self) -> RequestError:
        """Return the error about a file without rows."""
        return RequestError(f"IN: {self.path} has no rows", "IN")

    def _read_lines(self, start: int) -> Iterator[Row]:
        count = 0
        with self.path.open("rb") as file:
            for number, line in number_lines(read_pieces(file, parquet.MAX_ROW_BYTES)):
                if len(line) > parquet.MAX_ROW_BYTES:
                    what = f"longer than {parquet.MAX_ROW_BYTES:,} bytes; drop fields that are not needed"
                    raise RequestError(f"{self.path}, line {number}: {what}")
                count += 1
                if count > start:
                    yield Row(self.path, f"line {number}", _parse_row(line, f"{self.path}, line {number}"))


def _parse_row(line: bytes, location: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except RecursionError as error:
        raise RequestError(f"{location}: nested too deeply") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{location}: not UTF-8 text; expected {EXPECTED}") from error
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg} at character {error.pos + 1}"
        raise RequestError(f"{location}: {what}; expected {EXPECTED}") from error
    except ValueError as error:  # e.g. a number with too many digits
        raise RequestError(f"{location}: not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestError(f"{location}: expected an object, got {type(fields).__name__}")
    return fields
