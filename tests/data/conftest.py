"""Run the command `rewardstack prepare` in the test's process, and read and write data sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewardstack_cli.main import main
from tests.client.judge.conftest import judge as judge
from tests.client.judge.conftest import one_judge as one_judge

ROOT = Path(__file__).resolve().parents[2]
PAIRS = ROOT / "examples/data/math500_mia.jsonl"
GSM8K = ROOT / "examples/data/gsm8k"

Prepare = Callable[..., dict[str, Any]]
Refused = Callable[..., str]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return the output folder, which does not exist yet."""
    return tmp_path / "out"


@pytest.fixture
def prepare(out: Path, capsys: pytest.CaptureFixture[str]) -> Prepare:
    """Return a function that runs a recipe and returns its report."""

    def run(recipe: str, *arguments: object) -> dict[str, Any]:
        status = main(["prepare", recipe, *map(str, arguments), "-o", str(out), "--json"])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        report: dict[str, Any] = json.loads(printed.out)
        return report

    return run


@pytest.fixture
def refused(out: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return a function that runs a recipe, expects exit status 2 and no new files, and returns the error message."""

    def run(recipe: str, *arguments: object) -> str:
        before = sorted(out.iterdir()) if out.exists() else []
        assert main(["prepare", recipe, "-o", str(out), *map(str, arguments)]) == 2
        assert before == (sorted(out.iterdir()) if out.exists() else [])
        return capsys.readouterr().err

    return run


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as JSON lines and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_json(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as a JSON array and return the path."""
    path.write_text(json.dumps([*rows]))
    return path


def write_parquet(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as Parquet and return the path."""
    pq.write_table(pa.Table.from_pylist([*rows]), path)
    return path


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]
