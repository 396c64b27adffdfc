"""Data files for the tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ADDED = ("value", "status", "reason", "cause", "cached", "parts", "label_mass", "usage")
UNUSED = {"cause": None, "parts": None, "label_mass": None, "usage": None}
"""What the score of a rule without components adds to its row, besides value, status, reason and cached."""


def sample(number: int, **fields: Any) -> dict[str, Any]:
    """A GSM8K sample, right where `number` is even."""
    answer = number if number % 2 == 0 else number + 1
    solution = f"Sample {number}.\n#### {answer}"
    return {"id": number, "data_source": "gsm8k", "solution_str": solution, "ground_truth": str(number), **fields}


def samples(count: int) -> list[dict[str, Any]]:
    """`count` different samples."""
    return [sample(number) for number in range(count)]


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def read_parquet(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def own(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without what a score adds."""
    return [{name: value for name, value in row.items() if name not in ADDED} for row in rows]


def values(rows: Iterable[dict[str, Any]]) -> list[Any]:
    return [row["value"] for row in rows]


def statuses(rows: Iterable[dict[str, Any]]) -> list[str]:
    return [row["status"] for row in rows]
