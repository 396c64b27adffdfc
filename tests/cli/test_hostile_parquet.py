"""Parquet that somebody made to do harm: little memory, one line that names the file, status 2."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardstack.errors import RequestError
from rewardstack_cli.data import parquet
from rewardstack_cli.data.source import Source
from tests.support.table import Table

from .conftest import Cli
from .samples import own, read_parquet, samples, write_parquet

MEGABYTE = 1 << 20
TEXT = pa.array(["x"])
BAD_TEXT = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
)


def repeated(text: str, count: int) -> pa.Array:
    """A column whose rows all have one text, which the file has once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))


def table_of(count: int, **columns: Any) -> pa.Table:
    """Samples with further columns, or others in place of their own."""
    return pa.table({**pa.Table.from_pylist(samples(count)).to_pydict(), **columns})


def save(path: Path, table: pa.Table, **options: Any) -> None:
    """Writes a file that says nothing of dictionaries: they are read as plain text."""
    pq.write_table(table, path, compression="zstd", store_schema=False, **options)


def deep(array: pa.Array) -> pa.Array:
    """A value inside of 150 structs."""
    for _ in range(150):
        array = pa.StructArray.from_arrays([array], names=["a"])
    return array


def damaged(path: Path) -> None:
    """The page of a column is overwritten, the file's end is whole."""
    save(path, table_of(50), use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:400] = b"\xff" * 396
    path.write_bytes(data)


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "column twice": (
        lambda path: save(path, pa.Table.from_arrays([TEXT, TEXT], ["data_source", "data_source"])),
        "the column data_source is duplicated",
    ),
    "field twice": (
        lambda path: save(path, table_of(1, extra_info=pa.StructArray.from_arrays([TEXT, TEXT], ["a", "a"]))),
        "not a readable parquet file",
    ),
    "invalid UTF-8": (
        lambda path: save(path, table_of(1, solution_str=BAD_TEXT)),
        "not a readable parquet file: column solution_str: ",
    ),
    "too deep": (lambda path: save(path, table_of(1, extra_info=deep(TEXT))), "too deeply nested"),
    "damaged page": (damaged, "not a readable parquet file"),
    "date beyond the calendar": (
        lambda path: save(path, table_of(1, extra_info=pa.array([2**62], pa.timestamp("ms")))),
        "not a readable parquet file: column extra_info: ",
    ),
    "row too large": (
        lambda path: save(path, table_of(200, solution_str=repeated("a" * 65 * MEGABYTE, 200))),
        "row 1 takes 68,",
    ),
    "row too large inside": (
        lambda path: save(path, table_of(1, extra_info=pa.array([["a" * MEGABYTE] * 65]))),
        "row 1 takes 68,",
    ),
}


def test_a_bad_file_is_an_error_of_it(cli: Cli, table: Table, tmp_path: Path) -> None:
    """Whatever is wrong with a parquet file, a command that reads it names the file, and nothing is written."""
    path = tmp_path / "in.parquet"
    for name, (make, complaint) in BAD.items():
        make(path)
        for command in (
            ("score", "in.parquet", "-o", "out.jsonl"),
            ("score", "in.parquet", "-o", "out.parquet"),
            ("prepare", "gsm8k", "in.parquet", "-o", "prepared"),
        ):
            with table.case(f"{name}: {' '.join(command)}"):
                result = cli(*command)
                assert (result.status, result.err.count("\n")) == (2, 1), result.err
                assert result.err.startswith("rewardstack: error: in.parquet: "), result.err
                assert complaint in result.err, result.err
                assert not read_anything(tmp_path)


def read_anything(folder: Path) -> list[Path]:
    """What a command wrote."""
    return [path for path in folder.glob("out*") if path.stat().st_size] + list(folder.glob("prepared/*"))


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Python and Arrow take no more memory than this meanwhile."""
    pool = pa.system_memory_pool()
    before, usual = pool.max_memory(), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield
        python = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)
    arrow = max(0, pool.max_memory() - before)
    assert python + arrow < size, f"{python:,} bytes of Python, {arrow:,} of Arrow"


def test_memory(table: Table, tmp_path: Path) -> None:
    """Rows take memory by their bytes, however often the file repeats a text, and columns nobody needs take none."""
    large = 4 * MEGABYTE
    cases = {
        "text": table_of(64, solution_str=repeated("a" * large, 64)),
        "inside": table_of(64, extra_info=pa.StructArray.from_arrays([repeated("a" * large, 64)], ["a"])),
        "plain": table_of(64, solution_str=["a" * large] * 64),
    }
    for name, content in cases.items():
        save(tmp_path / "in.parquet", content, use_dictionary=name != "plain")
        with table.case(name), at_most(100 * MEGABYTE):
            rows = Source(tmp_path / "in.parquet").rows()
            assert [row.fields["id"] for row in rows] == list(range(64))
    with table.case("not needed"), at_most(10 * MEGABYTE):
        rows = Source(tmp_path / "in.parquet", ["data_source", "absent"]).rows()
        assert [row.fields for row in rows] == [{"data_source": "gsm8k"}] * 64


def test_all_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reading stops once the rows have taken 1,000 times the size of the file, also if a dictionary is their type."""
    monkeypatch.setattr(parquet, "MIN_LIMIT", MEGABYTE)
    path = tmp_path / "in.parquet"
    for store_schema in (False, True):
        content = table_of(64, solution_str=repeated("a" * MEGABYTE, 64))
        pq.write_table(content, path, compression="zstd", store_schema=store_schema)
        read = parquet.read_rows(path)
        with pytest.raises(RequestError, match="1,000 times the size of the file; .*JSONL"):
            for _ in read:
                pass
        assert path.stat().st_size < MEGABYTE // 16
    monkeypatch.undo()
    assert sum(1 for _ in parquet.read_rows(path)) == 64


def test_from_any_row(tmp_path: Path) -> None:
    """Reading from a row on gives the rest, whatever the groups and the sizes of rows."""
    rows = [{**row, "pad": "a" * (MEGABYTE if row["id"] % 7 == 0 else 1)} for row in samples(60)]
    path = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=25)
    for start in (0, 1, 24, 25, 26, 59, 60):
        assert list(parquet.read_rows(path, start)) == rows[start:], start


def test_types(tmp_path: Path) -> None:
    """Text of any kind, at any depth, is read as it is, and is written with its type."""
    columns = {
        "large": pa.array(["a", None, "b"], pa.large_string()),
        "view": pa.array(["a", None, "b"], pa.string_view()),
        "category": pa.array(["a", None, "a"]).dictionary_encode(),
        "bytes": pa.array([b"a", b"\xff", None]),
        "map": pa.array([[("k", "v")], None, []], pa.map_(pa.string(), pa.string())),
        "pair": pa.array([["a", "b"], ["d", "e"], ["c", None]], pa.list_(pa.string(), 2)),
        "inside": pa.array([{"a": "x", "l": ["y", "z"]}, None, {"a": None, "l": None}]),
    }
    content = table_of(3, **columns)
    pq.write_table(content, tmp_path / "in.parquet")
    stored = pq.read_table(tmp_path / "in.parquet")
    assert list(parquet.read_rows(tmp_path / "in.parquet")) == stored.to_pylist()
    schema = parquet.infer_schema(tmp_path / "in.parquet")
    added = [{"value": 1.0, "status": "ok", "reason": "", "cached": False}] * 3
    parquet.write(tmp_path / "out.parquet", tmp_path / "in.parquet", added, schema, "", None)
    assert pq.read_table(tmp_path / "out.parquet").select(stored.column_names).equals(stored)


def test_large_rows_are_scored(cli: Cli, tmp_path: Path) -> None:
    """Rows that no batch holds together come out whole, with their scores."""
    rows = [{**row, "pad": "a" * 5 * MEGABYTE} for row in samples(6)]
    write_parquet(tmp_path / "in.parquet", rows)
    result = cli("score", "in.parquet", "-o", "out.parquet")
    assert result.status in (0, 3), result.err
    assert own(read_parquet(tmp_path / "out.parquet")) == rows
