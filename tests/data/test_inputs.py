"""What `rewardstack prepare` reads, and how it writes: files, folders, the hub; whole files or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rewardstack_cli.recipes import dataset
from tests.data.conftest import (
    GSM8K,
    PAIRS,
    Prepare,
    Refused,
    lines_of,
    rows_of,
    write_json,
    write_lines,
    write_parquet,
)

WRITERS = [(".jsonl", write_lines), (".json", write_json), (".parquet", write_parquet)]


@pytest.mark.parametrize(("suffix", "write"), WRITERS, ids=[suffix for suffix, _ in WRITERS])
def test_forms(suffix: str, write: Callable[..., Path], prepare: Prepare, out: Path, tmp_path: Path) -> None:
    """JSON lines, an array of JSON and parquet of the same rows give the same output."""
    prepare("math500-mia", PAIRS)
    expected = rows_of(out / "train.parquet")

    prepare("math500-mia", write(tmp_path / f"copy{suffix}", lines_of(PAIRS)))

    assert expected == rows_of(out / "train.parquet")


def test_folder(prepare: Prepare, tmp_path: Path) -> None:
    """A folder as the hub's client downloads it is read: parquet below a folder, what is hidden left alone."""
    (tmp_path / "copy/main").mkdir(parents=True)
    for split in ("train", "test"):
        write_parquet(tmp_path / f"copy/main/{split}-00000-of-00001.parquet", lines_of(GSM8K / f"{split}.jsonl"))
    write_lines(tmp_path / "copy/.cache/train.jsonl", [{"question": 1}])

    report = prepare("gsm8k", tmp_path / "copy")

    assert {name: about["rows"] for name, about in report["splits"].items()} == {"train": 9, "test": 3}


def test_report(prepare: Prepare, out: Path) -> None:
    """The report is written as it is printed; its digests are those of the files."""
    report = prepare("math500-mia", PAIRS, "--seed", "3")

    assert report == json.loads((out / "report.json").read_text())
    assert (report["recipe"], report["seed"]) == ("math500-mia", 3)
    assert report["sources"][0]["sha256"] == {str(PAIRS): hashlib.sha256(PAIRS.read_bytes()).hexdigest()}
    for about in report["splits"].values():
        assert about["sha256"] == hashlib.sha256((out / about["file"]).read_bytes()).hexdigest()
        assert about["rows"] == len(rows_of(out / about["file"]))


def test_whole_or_nothing(prepare: Prepare, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the second file cannot be written, the first is not there either, nor what was begun."""
    write = pq.write_table

    def full(table: object, path: Path) -> None:
        write(table, path)
        if path.name.startswith("test"):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(AssertionError, match="No space left"):
        prepare("math500-mia", PAIRS)

    assert list(out.iterdir()) == []


def test_of_another_run(prepare: Prepare, refused: Refused, out: Path) -> None:
    """A test part of an earlier run does not stay beside a training part that it does not belong to."""
    prepare("math500-mia", PAIRS)

    assert "test.parquet is from another run" in refused("math500-mia", PAIRS, "--test-share", "0")


def test_output_is_a_file(refused: Refused, tmp_path: Path) -> None:
    """An output that is no folder is the user's to mend."""
    (tmp_path / "file").touch()

    assert "-o: " in refused("gsm8k", GSM8K, "-o", str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("in.json", "{}", "in.json: expected an array of objects, got dict"),
        ("in.json", "[1]", "in.json, row 1: expected an object, got int"),
        ("in.json", "[", "in.json: not JSON"),
        ("in.jsonl", "{", "in.jsonl, line 1: not JSON"),
        ("in.csv", "a,b", "in.csv ends in none of .jsonl, .parquet, .json"),
        ("in.parquet", "no", "in.parquet: not a readable parquet file"),
    ],
)
def test_unreadable(name: str, text: str, complaint: str, refused: Refused, tmp_path: Path) -> None:
    """A file that cannot be read is named, with what is wrong."""
    (tmp_path / name).write_text(text)

    assert complaint in refused("gsm8k", tmp_path / name)


def test_nothing_there(refused: Refused, tmp_path: Path) -> None:
    """A path where nothing is, and a folder without data, are said to be."""
    assert "there is no file or folder" in refused("gsm8k", tmp_path / "none.jsonl")
    (tmp_path / "empty").mkdir()
    assert "has no file that ends in" in refused("gsm8k", tmp_path / "empty")


def test_without_datasets(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name on the hub, where the package that loads from it is absent: the error names both remedies."""
    monkeypatch.setattr(dataset, "find_spec", lambda _: None)

    said = " ".join(refused("math500-mia").split())

    assert "HuggingFaceH4/MATH-500" in said and "pip install datasets" in said and "hf download" in said
