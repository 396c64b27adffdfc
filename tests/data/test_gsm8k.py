"""`rewardstack prepare gsm8k`: rows for the rule `gsm8k`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardstack_rules.functions.builtin.gsm8k import gsm8k
from tests.data.conftest import GSM8K, Prepare, Refused, lines_of, rows_of, write_lines


def test_rows(prepare: Prepare, out: Path) -> None:
    """A copy's own splits stay; the reference is the number behind the mark, without its commas."""
    report = prepare("gsm8k", GSM8K)

    assert {name: about["rows"] for name, about in report["splits"].items()} == {"train": 9, "test": 3}
    for split in ("train", "test"):
        given = lines_of(GSM8K / f"{split}.jsonl")
        for at, (one, row) in enumerate(zip(given, rows_of(out / f"{split}.parquet"), strict=True)):
            assert list(row) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
            assert row["data_source"] == "gsm8k" and row["reward_model"]["style"] == "rule"
            assert row["reward_model"]["ground_truth"] == one["answer"].rpartition("#### ")[2].replace(",", "")
            assert row["prompt"][0]["content"].startswith(one["question"]) and "####" in row["prompt"][0]["content"]
            own = {"split": split, "index": at, "question": one["question"], "answer": one["answer"]}
            assert row["extra_info"] == {**own, "method": "strict"}


def test_scored(prepare: Prepare, out: Path) -> None:
    """The solution of the data set is right by the rule with a row's own options, another number is wrong."""
    prepare("gsm8k", GSM8K)

    for row in rows_of(out / "train.parquet"):
        reference, extra = row["reward_model"]["ground_truth"], row["extra_info"]
        assert gsm8k(extra["answer"], reference, extra["method"]).value == 1
        assert gsm8k("#### 123456", reference, extra["method"]).value == 0


def test_share(prepare: Prepare, out: Path) -> None:
    """One file that names no split is divided: every row once, a share of them in the test."""
    whole = write_lines(out.parent / "all.jsonl", lines_of(GSM8K / "train.jsonl"))

    report = prepare("gsm8k", whole, "--test-share", "0.33", "--seed", "5")

    assert {name: about["rows"] for name, about in report["splits"].items()} == {"train": 6, "test": 3}
    questions = [
        row["extra_info"]["question"] for split in ("train", "test") for row in rows_of(out / f"{split}.parquet")
    ]
    assert sorted(questions) == sorted(one["question"] for one in lines_of(whole))


def test_dropped(prepare: Prepare, tmp_path: Path) -> None:
    """A question that was read before is left out, so that no question of the test is trained on."""
    rows = [{"question": question, "answer": "#### 1"} for question in ("A?", "B?", " A?", "")]

    report = prepare("gsm8k", write_lines(tmp_path / "train.jsonl", rows), "--test-share", "0")

    assert report["splits"]["train"]["rows"] == 2
    assert {"the question is empty", "the question was read before"} == set(report["dropped"])


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("It is 4.", "answer must end with `#### NUMBER`, found none"),
        ("#### four", "answer must end with `#### NUMBER`, found 'four'"),
        (4, "answer must be a string, not int"),
    ],
)
def test_malformed(answer: object, complaint: str, refused: Refused, tmp_path: Path) -> None:
    """A solution without its number is named by file, row and field."""
    path = write_lines(tmp_path / "train.jsonl", [{"question": "2 + 2?", "answer": answer}])

    assert f"train.jsonl, line 1: {complaint}" in refused("gsm8k", path)
