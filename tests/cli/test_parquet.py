"""Parquet in and out."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardstack.score import Usage

from .conftest import SOURCES, Cli, RewardServer
from .samples import ADDED, own, read_jsonl, read_parquet, sample, samples, statuses, values, write_jsonl, write_parquet

VERL = {
    "data_source": "gsm8k",
    "prompt": [{"role": "user", "content": "6 * 7"}],
    "reward_model": {"style": "rule", "ground_truth": "42"},
    "extra_info": {"index": 1, "split": "train", "timeout": None},
    "response": "#### 42",
}


def test_every_type_survives(scoring: Cli, tmp_path: Path) -> None:
    """Columns keep types and metadata that JSON knows nothing of; those of the scores are more."""
    row = {**VERL, "image": b"\x89PNG", "day": datetime.date(2026, 1, 2), "price": decimal.Decimal("1.50")}
    table = pa.Table.from_pylist([row] * 3).replace_schema_metadata({"author": "somebody"})
    pq.write_table(table, tmp_path / "in.parquet")
    assert scoring("score", "in.parquet", "-o", "out.parquet").status == 0
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.select(table.column_names).equals(table)
    assert out.schema.metadata[b"author"] == b"somebody"
    text, number = pa.string(), pa.float64()
    usage = pa.struct([(name, pa.int64()) for name in Usage._fields])
    types = (number, text, text, text, pa.bool_(), pa.map_(text, number), number, usage)
    assert [out.schema.field(name).type for name in ADDED] == [*types]
    assert values(out.to_pylist()) == [1.0, 1.0, 1.0]


def test_old_scores_are_replaced(scoring: Cli, tmp_path: Path) -> None:
    """A scored parquet file as IN has each column of a score once in OUT."""
    write_parquet(tmp_path / "in.parquet", samples(3))
    scoring("score", "in.parquet", "-o", "out.parquet")
    assert scoring("score", "out.parquet", "-o", "again.parquet").status == 0
    assert read_parquet(tmp_path / "again.parquet") == read_parquet(tmp_path / "out.parquet")


def test_parquet_becomes_jsonl(scoring: Cli, tmp_path: Path) -> None:
    """What JSON has no type for is written as text, bytes in base64."""
    write_parquet(tmp_path / "in.parquet", [{**sample(2), "image": b"\x89PNG", "day": datetime.date(2026, 1, 2)}])
    assert scoring("score", "in.parquet", "-o", "out.jsonl").status == 0
    assert own(read_jsonl(tmp_path / "out.jsonl")) == [{**sample(2), "image": "iVBORw==", "day": "2026-01-02"}]


def test_jsonl_becomes_parquet(scoring: Cli, tmp_path: Path) -> None:
    """Fields that only later rows have, and numbers that are whole in some rows only, get their columns."""
    rows = [sample(number) for number in range(1100)] + [sample(1100, weight=1), sample(1101, weight=0.5)]
    write_jsonl(tmp_path / "in.jsonl", rows)
    assert scoring("score", "in.jsonl", "-o", "out.parquet").status == 0
    out = read_parquet(tmp_path / "out.parquet")
    assert [row["weight"] for row in out[-3:]] == [None, 1.0, 0.5]
    assert [{name: row[name] for name in sample(0)} for row in out] == [sample(number) for number in range(1102)]
    assert values(out) == [float(number % 2 == 0) for number in range(1102)]


@pytest.mark.parametrize(
    ("field", "rows"),
    [
        ("ground_truth", [sample(1), sample(2, ground_truth=["2"])]),
        ("ground_truth", [*samples(1024), sample(2, ground_truth=["2"])]),
        ("note", [sample(1, note={})]),
        ("note", [sample(1, note="\ud800")]),
        ("note", [sample(1, note=2**70)]),
    ],
)
def test_what_parquet_cannot_hold_is_said_before_anything_is_scored(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, field: str, rows: list[dict[str, Any]]
) -> None:
    """A field of mixed types, or of one that parquet lacks, is named; JSONL is the way out."""
    write_jsonl(tmp_path / "in.jsonl", rows)
    before = reward_server.items()
    result = scoring("score", "in.jsonl", "-o", "out.parquet")
    assert (result.status, reward_server.items()) == (2, before)
    assert field in result.err
    assert "write JSONL instead" in result.err


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
def test_a_complete_out_is_left_alone(scoring: Cli, reward_server: RewardServer, tmp_path: Path, name: str) -> None:
    """A second run finds OUT made from this IN, scores nothing and has the first one's status."""
    rows = [*samples(5), sample(6, ground_truth="no number")]
    (write_jsonl if name == "in.jsonl" else write_parquet)(tmp_path / name, rows)
    assert scoring("score", name, "-o", "out.parquet").status == 3
    before = reward_server.items()
    result = scoring("score", name, "-o", "out.parquet")
    assert (result.status, reward_server.items()) == (3, before)
    assert "6 rows; ok 5, unscored 1" in result.out


def test_an_out_of_other_data_is_not_touched(scoring: Cli, tmp_path: Path) -> None:
    """A parquet file that was not made from this IN is an error, and is overwritten only by --force."""
    write_parquet(tmp_path / "in.parquet", samples(5))
    write_parquet(tmp_path / "out.parquet", samples(3))
    result = scoring("score", "in.parquet", "-o", "out.parquet")
    assert result.status == 2
    assert "out.parquet exists and is not made from this IN" in result.err
    assert read_parquet(tmp_path / "out.parquet") == samples(3)
    assert scoring("score", "in.parquet", "-o", "out.parquet", "--force").status == 0
    assert statuses(read_parquet(tmp_path / "out.parquet")) == ["ok"] * 5


@pytest.mark.usefixtures("needs_process")
def test_parquet_without_pyarrow_says_what_to_install(cli: Cli, tmp_path: Path) -> None:
    """Where pyarrow is absent, JSONL works and parquet says what to install."""
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    cli.variables["PYTHONPATH"] = f"{tmp_path / 'hide'}:{SOURCES}"
    write_jsonl(tmp_path / "in.jsonl", samples(1))
    result = cli.process("score", "in.jsonl", "-o", "out.parquet")
    assert result.status == 2
    assert "pip install pyarrow" in result.err
    assert cli.process("score", "in.jsonl", "-o", "out.jsonl").status == 0
