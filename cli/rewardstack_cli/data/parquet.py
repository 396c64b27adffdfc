"""Parquet in and out, by pyarrow (extra `data`), which is imported only where a parquet file is named."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardstack.errors import RequestError, SettingsError
from rewardstack_cli.data.rows import ADDED, own_fields
from rewardstack_cli.provenance import Provenance, parse

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 1024
"""Rows in memory at a time."""
INPUT_DIGEST = b"rewardstack.input"
"""Metadata of OUT: the digest of the rows it was made from."""
PROVENANCE = b"rewardstack.provenance"
"""Metadata of OUT: what its scores depended on, as JSON."""


def require() -> None:
    """Raises `SettingsError` where pyarrow is absent."""
    if find_spec("pyarrow") is None:
        raise SettingsError("parquet needs pyarrow; install it with: pip install pyarrow")


def read_rows(path: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file from number `start` (from 0) on, as Python's own types.

    Raises:
        RequestError: it is no readable parquet file.
    """
    for batch in _batches(path):
        if start < len(batch):
            yield from batch.slice(start).to_pylist()
        start = max(0, start - len(batch))


def read_added(path: Path) -> Iterator[dict[str, Any]]:
    """What the scores added to the rows of a file written by `write`."""
    for batch in _batches(path, ADDED):
        yield from batch.to_pylist()


def made_from(path: Path) -> tuple[str, Provenance | None]:
    """The digest of the rows that a parquet file written by `write` was made from, and what its scores depended on.

    For any other they are empty and None.
    """
    import pyarrow.parquet as pq

    with _readable(path):
        metadata = pq.read_schema(path).metadata or {}
    return metadata.get(INPUT_DIGEST, b"").decode(), parse(metadata.get(PROVENANCE, b""))


def schema_of(rows: Path | Iterable[dict[str, Any]]) -> pa.Schema:
    """The columns that hold all of `rows`, what a score adds left out.

    Args:
        rows: the parquet file they are in, or the rows themselves.

    Raises:
        RequestError: parquet has no type for a field, or its values have several; the message names it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if isinstance(rows, Path):
        with _readable(rows):
            return _without_added(pq.read_schema(rows))
    schema = pa.schema([])
    try:
        for chunk in _chunks(map(own_fields, rows)):
            names = dict.fromkeys(name for row in chunk for name in row)
            found = pa.schema([(name, _column(name, chunk).type) for name in names])
            schema = pa.unify_schemas([schema, found], promote_options="permissive")
        pq.ParquetWriter(io.BytesIO(), schema).close()
    except pa.ArrowException as error:
        raise RequestError(f"the rows do not fit into parquet ({error}); write JSONL instead", "-o") from error
    return schema


def write(
    path: Path,
    rows: Path | Iterable[dict[str, Any]],
    added: Iterable[dict[str, Any]],
    schema: pa.Schema,
    digest: str,
    provenance: Provenance | None,
) -> None:
    """Writes OUT whole: under another name first, so that it is never seen half written.

    Args:
        path: of OUT.
        rows: the parquet file they are in, or the rows themselves.
        added: what the scores add, one a row.
        schema: from `schema_of(rows)`.
        digest: of the rows, kept in OUT.
        provenance: what the scores depended on, kept there as well; None where nobody knows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = pa.schema(
        [("value", pa.float64()), ("status", pa.string()), ("reason", pa.string()), ("cached", pa.bool_())]
    )
    metadata = {**(schema.metadata or {}), INPUT_DIGEST: digest.encode(), PROVENANCE: json.dumps(provenance).encode()}
    whole = pa.schema([*schema, *types], metadata=metadata)
    added = iter(added)
    hidden = path.with_name(path.name + ".tmp")
    with pq.ParquetWriter(hidden, whole) as writer:
        for own in _tables(rows, schema):
            scores = pa.Table.from_pylist(list(islice(added, len(own))), schema=types)
            writer.write_table(pa.Table.from_arrays([*own.columns, *scores.columns], schema=whole))
    hidden.replace(path)


def _tables(rows: Path | Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa

    if isinstance(rows, Path):
        for batch in _batches(rows):
            yield pa.Table.from_batches([batch]).select(schema.names)
        return
    for chunk in _chunks(map(own_fields, rows)):
        yield pa.Table.from_arrays([_column(field.name, chunk, field.type) for field in schema], schema=schema)


def _column(name: str, rows: list[dict[str, Any]], kind: pa.DataType | None = None) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array([row.get(name) for row in rows], type=kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise RequestError(f"{name} does not fit into parquet ({error}); write JSONL instead", name) from error


def _without_added(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([field for field in schema if field.name not in ADDED], metadata=schema.metadata)


def _batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with _readable(path), pq.ParquetFile(path) as file:
        yield from file.iter_batches(BATCH, columns=columns)


def _chunks(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    rows = iter(rows)
    while chunk := list(islice(rows, BATCH)):
        yield chunk


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise RequestError(f"{path}: not a readable parquet file: {error}") from error
