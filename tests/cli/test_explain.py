"""`rewardstack explain`: the way of one sample, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.snippets import assert_shown, block

from .conftest import Cli
from .samples import sample, write_jsonl, write_parquet


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_row(scoring: Cli, tmp_path: Path, kind: str) -> None:
    """A row is counted from 1, and its steps and its score are printed; the reward server tells its own."""
    rows = [sample(2), sample(3), sample(4)]
    write = write_jsonl if kind == "jsonl" else write_parquet
    write(tmp_path / f"in.{kind}", rows)
    result = scoring("explain", f"in.{kind}", "--row", "2")
    assert result.status == 0, result.err
    for words in ("1 route", "references: 3", "answer: 4", "references as read: 3", "value: 0.0"):
        assert words in result.out


def test_the_document_shows_what_is_printed(scoring: Cli, tmp_path: Path) -> None:
    """The way of a sample in `docs/runbook.md` is what the command above it prints, some lines left out."""
    command, shown = block("docs/runbook.md", "", "$ rewardstack").split("\n", 1)
    text = "There are two roots.\nTheir sum is $2x + 1$, so the answer is \\boxed{2x+1}."
    write_jsonl(
        tmp_path / "rollouts.jsonl", [{"data_source": "math", "solution_str": text, "ground_truth": ["2(x+1)", ""]}]
    )
    printed = scoring(*command.split()[2:]).out
    assert_shown(shown, printed, r"http://\S+|\d+\.\d+(?= [a-z])")


def test_a_sample_on_the_command_line(scoring: Cli) -> None:
    """A sample needs no file; programs get JSON."""
    result = scoring(
        *("explain", "--json", "--data-source", "gsm8k", "--solution", "so 42"),
        *("--ground-truth", "41", "--ground-truth", "42", "--extra", '{"method": "flexible"}'),
    )
    found = json.loads(result.out)
    assert (result.status, found["score"]["value"], found["error"]) == (0, 1.0, "")
    assert [step["step"] for step in found["steps"]][:3] == ["route", "request", "prepared"]


def test_what_steers_a_terminal(scoring: Cli) -> None:
    """Neither control characters nor markup of a sample reach the terminal."""
    result = scoring(
        "explain", "--data-source", "gsm8k", "--solution", "a\x1b[31m[bold]\n#### 42", "--ground-truth", "42"
    )
    assert "\x1b" not in result.out and "[bold]" in result.out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--data-source", "gsm8k", "--solution", "x", "--ground-truth", "none"], 1, "the reference holds no number"),
        (["--data-source", "nothing", "--solution", "x"], 2, "has no route"),
        ([], 2, "name a sample"),
        (["--data-source", "gsm8k", "--solution", "x", "--extra", '{"metod": 1}'], 1, "mean extra_info.method?"),
        (["in.jsonl"], 2, "needs --row N"),
        (["in.jsonl", "--row", "9"], 2, "fewer than 9 rows"),
        (["--data-source", "gsm8k", "--solution", "x", "--extra", "{"], 2, "--extra: not JSON"),
        (["--data-source", "gsm8k", "--solution", "x", "--extra", "[]"], 2, "extra_info: expected an object"),
        (["--data-source", "gsm8k", "--solution", "x", "--row", "1"], 2, "--row needs FILE"),
    ],
)
def test_exit_status(scoring: Cli, tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    """0 where there is a score, 1 where there is none, 2 where the sample is wrong; and why."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2)])
    result = scoring("explain", *arguments)
    assert (result.status, words in result.out + result.err) == (status, True), result
