"""Read and write parquet files with pyarrow (extra `data`), which is imported on first use."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardstack.errors import RequestError, RewardstackError, SettingsError
from rewardstack.score import Usage
from rewardstack_cli.data.rows import SCORE_FIELDS, input_fields
from rewardstack_cli.provenance import Provenance, parse_provenance

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

BATCH = 1024
"""Maximum number of rows in memory at a time."""
BATCH_BYTES = 16 << 20
"""Maximum bytes of the rows in memory, unless a single row takes more."""
MAX_ROW_BYTES = 64 << 20
"""Maximum bytes of one row. A small file can have huge rows, because repeated values are stored once."""
MAX_RATIO = 1000
"""Maximum size of all rows, as a multiple of the file's size; the maximum compression ratio of gzip is similar."""
MIN_LIMIT = 1 << 30
"""Bytes that the rows of any file may take, however small the file is."""
MAX_DEPTH = 100
"""Maximum nesting depth of a column; some releases of pyarrow have no limit."""
VALUE_BYTES = 64
"""Approximate overhead in bytes of a Python value."""
INPUT_DIGEST = b"rewardstack.input"
"""Metadata key for the digest of the input rows, in OUT, the output file."""
PROVENANCE = b"rewardstack.provenance"
"""Metadata key for the provenance of the scores in OUT, as JSON."""


def require_pyarrow() -> None:
    """Raise `SettingsError` if pyarrow is not installed."""
    if find_spec("pyarrow") is None:
        raise SettingsError("parquet needs pyarrow; install it with: pip install pyarrow")


def read_rows(path: Path, start: int = 0, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a parquet file as Python values.

    Args:
        path: path of the file.
        start: index of the first row to read.
        columns: columns to read, if the file has them; None for all.

    Raises:
        RequestError: the file is not readable, a column is duplicated or nested too deeply, a row is larger than
            `MAX_ROW_BYTES`, or all rows together exceed both `MIN_LIMIT` and `MAX_RATIO` times the size of the file.
    """
    with _translate_errors(path):
        limit = max(MIN_LIMIT, MAX_RATIO * path.stat().st_size)
        for batch in _read_batches(path, columns, start):
            limit -= sum(map(_estimate_size, batch.columns))
            if limit < 0:
                raise RequestError(
                    f"{path}: its rows take more than {MAX_RATIO:,} times the size of the file; "
                    "if it really contains that much data, convert it to JSONL"
                )
            yield from _values(path, batch)


def _values(path: Path, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch; raise `RequestError` if a column has a value that Python cannot represent."""
    import pyarrow as pa

    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
        return rows
    except (pa.ArrowException, ValueError, OverflowError):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.to_pylist()
            except (pa.ArrowException, ValueError, OverflowError) as error:
                raise RequestError(f"{path}: not a readable parquet file: column {name}: {error}", name) from error
        raise


def read_added(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the score fields of each row of a file written by `write`."""
    for batch in _read_batches(path, SCORE_FIELDS):
        for row in batch.to_pylist():
            # pyarrow returns a map as a list of pairs.
            yield {**row, "parts": None if row["parts"] is None else dict(row["parts"])}


def read_origin(path: Path) -> tuple[str, Provenance | None]:
    """Return the input digest and the provenance that `write` stored in a parquet file.

    If the file was not written by `write`, the digest is empty and the provenance None.
    """
    import pyarrow.parquet as pq

    with _translate_errors(path):
        metadata = pq.read_schema(path).metadata or {}
    return metadata.get(INPUT_DIGEST, b"").decode(), parse_provenance(metadata.get(PROVENANCE, b""))


def infer_schema(rows: Path | Iterable[dict[str, Any]]) -> pa.Schema:
    """Return a schema for all rows, without the score fields.

    Args:
        rows: path of a parquet file with the rows, or the rows themselves.

    Raises:
        RequestError: a field has values of different types, or of a type that parquet lacks; the message names
            the field.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(rows, Path):
        with _translate_errors(rows):
            return _input_schema(_read_schema(rows, pq.read_metadata(rows)))
    schema = pa.schema([])
    try:
        for chunk in _split_into_chunks(map(input_fields, rows)):
            names = dict.fromkeys(name for row in chunk for name in row)
            chunk_schema = pa.schema([(name, _column(name, chunk).type) for name in names])
            schema = pa.unify_schemas([schema, chunk_schema], promote_options="permissive")
        pq.ParquetWriter(io.BytesIO(), schema).close()
    except pa.ArrowException as error:
        raise RequestError(f"the rows do not fit into parquet ({error}); write JSONL instead", "-o") from error
    return schema


def write(
    path: Path,
    rows: Path | Iterable[dict[str, Any]],
    score_rows: Iterable[dict[str, Any]],
    schema: pa.Schema,
    digest: str,
    provenance: Provenance | None,
) -> None:
    """Write OUT under a temporary name, then rename it, so that a partial file is never visible.

    Args:
        path: path of OUT.
        rows: path of a parquet file with the input rows, or the rows themselves.
        score_rows: the score fields of each row.
        schema: the schema from `infer_schema(rows)`.
        digest: digest of the input rows, stored in OUT.
        provenance: the provenance of the scores, stored in OUT; None if unknown.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = _score_schema()
    metadata = {**(schema.metadata or {}), INPUT_DIGEST: digest.encode(), PROVENANCE: json.dumps(provenance).encode()}
    out_schema = pa.schema([*schema, *types], metadata=metadata)
    score_rows = iter(score_rows)
    temporary = path.with_name(path.name + ".tmp")
    with pq.ParquetWriter(temporary, out_schema) as writer:
        for table in _input_tables(rows, schema):
            scores = pa.Table.from_pylist(list(islice(score_rows, len(table))), schema=types)
            writer.write_table(pa.Table.from_arrays([*table.columns, *scores.columns], schema=out_schema))
    temporary.replace(path)


def _score_schema() -> pa.Schema:
    """Return the types of the fields in `SCORE_FIELDS`."""
    import pyarrow as pa

    number, text = pa.float64(), pa.string()
    usage = pa.struct([(name, pa.int64()) for name in Usage._fields])
    types = (number, text, text, text, pa.bool_(), pa.map_(text, number), number, usage)
    return pa.schema([*zip(SCORE_FIELDS, types, strict=True)])


def _input_tables(rows: Path | Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa

    if isinstance(rows, Path):
        for batch in _read_batches(rows):
            yield pa.Table.from_batches([batch]).select(schema.names)
        return
    for chunk in _split_into_chunks(map(input_fields, rows)):
        yield pa.Table.from_arrays([_column(field.name, chunk, field.type) for field in schema], schema=schema)


def _column(name: str, rows: list[dict[str, Any]], kind: pa.DataType | None = None) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array([row.get(name) for row in rows], type=kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise RequestError(f"{name} does not fit into parquet ({error}); write JSONL instead", name) from error


def _input_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in SCORE_FIELDS], metadata=schema.metadata)


def _read_batches(path: Path, columns: Sequence[str] | None = None, start: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the rows from index `start` on, in batches of at most `BATCH` rows and `BATCH_BYTES`.

    A row that is larger than `BATCH_BYTES` is a batch by itself.
    """
    import pyarrow.parquet as pq

    with _translate_errors(path):
        metadata = pq.read_metadata(path)
        schema = _read_schema(path, metadata)
        leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
        names = None if columns is None else [name for name in schema.names if name in columns]
        # Keep dictionaries encoded until their decoded size is known.
        text_columns = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=text_columns, buffer_size=1 << 20) as file:
            row = 0
            for group in range(metadata.num_row_groups):
                count = metadata.row_group(group).num_rows
                if row + count > start:
                    size = _batch_rows(path, metadata.row_group(group), row)
                    for batch in file.iter_batches(size, [group], names):
                        skipped = min(max(0, start - row), len(batch))
                        yield from _split_batch(path, batch.slice(skipped), row + skipped, schema)
                        row += len(batch)
                else:
                    row += count


def _read_schema(path: Path, metadata: pq.FileMetaData) -> pa.Schema:
    """Return the columns of a file.

    Raises:
        RequestError: a column is duplicated or nested too deeply.
    """
    for at in range(metadata.num_columns):
        parts = metadata.schema.column(at).path.split(".")
        if sum(part not in ("list", "key_value") for part in parts) > MAX_DEPTH + 1:
            raise RequestError(f"{path}: {parts[0]} is too deeply nested (more than {MAX_DEPTH} levels)", parts[0])
    schema = metadata.schema.to_arrow_schema()
    duplicate = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if duplicate is not None:
        raise RequestError(f"{path}: the column {duplicate} is duplicated; rename or drop one", duplicate)
    return schema


def _batch_rows(path: Path, group: pq.RowGroupMetaData, start: int) -> int:
    """Return how many rows to decode at a time, computed from the sizes that the file declares for a row group."""
    columns = [group.column(number) for number in range(group.num_columns)]
    declared = sum(max(column.total_uncompressed_size, 8 * column.num_values) for column in columns)
    average = declared // max(1, group.num_rows)
    if average > MAX_ROW_BYTES:
        raise _too_large(path, f"rows {start + 1} to {start + group.num_rows} take {average:,} bytes each")
    return min(BATCH, max(1, BATCH_BYTES // max(1, average)))


def _split_batch(path: Path, batch: pa.RecordBatch, start: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts that are within the size limits, and cast the parts to `schema`.

    `start` is the index of the batch's first row in the file.
    """
    import pyarrow as pa

    size = sum(map(_estimate_size, batch.columns))
    if len(batch) > 1 and size > BATCH_BYTES:
        middle = len(batch) // 2
        yield from _split_batch(path, batch.slice(0, middle), start, schema)
        yield from _split_batch(path, batch.slice(middle), start + middle, schema)
    elif size > MAX_ROW_BYTES:
        raise _too_large(path, f"row {start + 1} takes {size:,} bytes")
    elif len(batch):
        fields = [schema.field(name) for name in batch.schema.names]
        columns = [_decode(column, field.type) for column, field in zip(batch.columns, fields, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=schema.metadata))


def _estimate_size(array: pa.Array) -> int:
    """Estimate the bytes of an array's values in Python, where repeated values are not shared."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    table = VALUE_BYTES * len(array)
    if isinstance(array, pa.ExtensionArray):
        return _estimate_size(array.storage)
    if types.is_dictionary(array.type):
        if not _is_text(array.dictionary.type):
            return table + int(array.nbytes)
        return table + (pc.sum(pc.binary_length(array.dictionary).cast(pa.int64()).take(array.indices)).as_py() or 0)
    if types.is_struct(array.type):
        return table + sum(map(_estimate_size, array.flatten()))
    if types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return table + sum(_estimate_size(part.slice(first, last - first)) for part in (array.keys, array.items))
    if types.is_nested(array.type):
        return table + _estimate_size(array.flatten())
    return table + int(array.nbytes)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return any(one(kind) for one in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary))


def _decode(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column with the type that the file declares, decoding dictionaries."""
    import pyarrow.types as types

    if types.is_dictionary(array.type) and not types.is_dictionary(kind):
        array = array.dictionary_decode()
    return array if array.type == kind else array.cast(kind)


def _too_large(path: Path, what: str) -> RequestError:
    return RequestError(
        f"{path}: {what}; the limit of a row is {MAX_ROW_BYTES:,} bytes; drop columns that are not needed"
    )


def _split_into_chunks(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    rows = iter(rows)
    while chunk := list(islice(rows, BATCH)):
        yield chunk


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Replace pyarrow's errors about a damaged file by `RequestError`.

    Some of these errors are an `OSError` without `errno`. An `OSError` with `errno` is an error of the
    operating system, and is not replaced.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, OSError) as error:
        if isinstance(error, RewardstackError) or getattr(error, "errno", None) is not None:
            raise
        raise RequestError(f"{path}: not a readable parquet file: {error}") from error
