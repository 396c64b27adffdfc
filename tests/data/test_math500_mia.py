"""`rewardstack prepare math500-mia`: pairs on the same problem, configured for the remote judge."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from rewardstack import compute_score
from tests.client.judge.conftest import asked
from tests.data.conftest import PAIRS, Prepare, Refused, lines_of, rows_of, write_lines
from tests.support.servers import FaultServer


def row(problem: str, response: str, label: Any = None) -> dict[str, Any]:
    return {"problem": problem, "response": response, **({} if label is None else {"label": label})}


def test_pairs(prepare: Prepare, out: Path) -> None:
    """Each response of the input is the reference of one row; both of a pair answer one problem, and in one split."""
    prepare("math500-mia", PAIRS, "--test-share", "0.25")

    rows = rows_of(out / "train.parquet") + rows_of(out / "test.parquet")
    written = {
        (one["extra_info"]["problem"], one["reward_model"]["ground_truth"], one["extra_info"]["label"]) for one in rows
    }
    assert written == {(one["problem"], one["response"], one["label"]) for one in lines_of(PAIRS)}
    pairs = defaultdict(list)
    for one in rows:
        pairs[one["extra_info"]["split"], one["extra_info"]["pair"]].append(one)
    for members in pairs.values():
        assert [one["extra_info"]["label"] for one in members] == ["member", "non_member"]
        assert len({one["extra_info"]["problem"] for one in members}) == 1
    assert Counter(split for split, _ in pairs) == {"train": 9, "test": 3}


def test_columns(prepare: Prepare, out: Path) -> None:
    """A row has verl's columns, and the judge's options in its `extra_info`."""
    prepare("math500-mia", PAIRS, "--model", "small", "--temperature", "0", "--template", "binary")

    for at, one in enumerate(rows_of(out / "train.parquet")):
        extra = one["extra_info"]
        assert list(one) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
        assert one["data_source"] == "llm_judge_remote_math500_mia"
        assert one["prompt"] == [{"role": "user", "content": extra["problem"]}]
        assert (one["ability"], one["reward_model"]["style"]) == ("math", "model")
        assert (extra["split"], extra["index"]) == ("train", at)
        told = {"model_name": "small", "prompt_template": "binary", "temperature": 0.0, "top_p": 0.8}
        assert told | {"max_new_tokens": 512, "enable_thinking": False} == {
            name: value for name, value in extra.items() if name not in {"split", "index", "pair", "label", "problem"}
        }


def test_scored(prepare: Prepare, out: Path, judge: FaultServer) -> None:
    """The judge is asked as a row says, and what it replies is the row's score."""
    prepare("math500-mia", PAIRS, "--model", "small", "--temperature", "0", "--max-new-tokens", "77")
    judge.set(content="REWARD: 0.750")
    rows = rows_of(out / "test.parquet")

    scores = compute_score(
        data_sources=[one["data_source"] for one in rows],
        solution_strs=["The answer is 12."] * len(rows),
        ground_truths=[one["reward_model"]["ground_truth"] for one in rows],
        extra_infos=[one["extra_info"] for one in rows],
    )

    assert scores == [0.75] * len(rows)
    bodies = asked(judge)
    assert {(body["model"], body["temperature"], body["max_tokens"]) for body in bodies} == {("small", 0, 77)}
    for one in rows:
        texts = (one["extra_info"]["problem"], one["reward_model"]["ground_truth"], "The answer is 12.")
        assert any(all(text in body["messages"][-1]["content"] for text in texts) for body in bodies)
        assert not any(one["extra_info"]["label"] in json.dumps(body["messages"]) for body in bodies)


def test_same_seed(prepare: Prepare, out: Path) -> None:
    """The same seed gives the same bytes, another one another order of the same rows."""

    def written(seed: str) -> list[bytes]:
        prepare("math500-mia", PAIRS, "--seed", seed, "--test-share", "0.25")
        return [path.read_bytes() for path in sorted(out.iterdir())]

    first = written("1")
    assert len(first) == 3 and written("1") == first
    assert written("2") != first


def test_non_members(prepare: Prepare, out: Path, tmp_path: Path) -> None:
    """Rows as MATH-500 has them are members, those of --non-members are their counterparts."""
    given = [
        {"problem": f"What is {n} + 1?", "solution": f"{n + 1}", "answer": f"{n + 1}", "level": 1} for n in range(4)
    ]
    others = [row(f"What is  {n} + 1?\n", f"It is {n + 1}.") for n in range(3)]
    members = write_lines(tmp_path / "test.jsonl", given)
    non_members = write_lines(tmp_path / "others.jsonl", others)

    report = prepare("math500-mia", members, "--non-members", non_members, "--test-share", "0")

    assert report["splits"]["train"]["labels"] == {"member": 3, "non_member": 3}
    assert [source["rows"] for source in report["sources"]] == [4, 3]
    assert {one["reward_model"]["ground_truth"] for one in rows_of(out / "train.parquet")} >= {"1", "It is 1."}


def test_dropped(prepare: Prepare, tmp_path: Path) -> None:
    """What cannot be paired is left out, and the report says how many rows, why, and where the first is."""
    rows = [
        row("A", "m1", 1),
        row("A", "n1", 0),
        row("A", "m1", True),
        row("A", "m2", "member"),
        row("B", "n", "non-member"),
    ]
    path = write_lines(tmp_path / "in.jsonl", [*rows, row("C", " ", 1), row("", "x", 0)])

    report = prepare("math500-mia", path, "--test-share", "0.5")

    assert report["splits"]["train"]["rows"] == 2 and "test" not in report["splits"]
    dropped = {why: (about["rows"], about["first"].rpartition(" ")[2]) for why, about in report["dropped"].items()}
    assert {
        "an earlier row has the same problem and response": (1, "3"),
        "a non_member response without a counterpart to the same problem": (1, "5"),
        "the response is empty": (1, "6"),
        "the problem is empty": (1, "7"),
    }.items() <= dropped.items()
    assert sum(count for count, _ in dropped.values()) == 5


def test_template_of_a_file(prepare: Prepare, out: Path, tmp_path: Path) -> None:
    """A template's text is written into the rows, for a trainer may run on another machine."""
    template = tmp_path / "mine.txt"
    template.write_text("{PROBLEM} {REFERENCE_SOLUTION} {CANDIDATE_SOLUTION}\nREWARD: <0 to 1>\n")

    prepare("math500-mia", PAIRS, "--template", template, "--model", "", "--extra", '{"num_samples": 3}')

    extra = rows_of(out / "test.parquet")[0]["extra_info"]
    assert extra["prompt_template"] == template.read_text() and extra["num_samples"] == 3
    assert "model_name" not in extra


MALFORMED = [
    ([row("A", "x")], "in.jsonl, line 1: label is missing"),
    ([row("A", "x", 1), row("A", "y", "maybe")], "in.jsonl, line 2: label must be member or non_member"),
    ([row("A", "x", 1), {"problem": "A", "label": 0}], "in.jsonl, line 2: response is missing (and so is solution)"),
    ([{"problem": 7, "response": "x", "label": 0}], "in.jsonl, line 1: problem must be a string, not int"),
    ([row("A", "x", 1), row("A", "x", 0)], "line 2: label is non_member, but the same response is member in"),
    ([row("A", "\ud800", 1)], "in.jsonl, line 1: response contains an unpaired surrogate"),
    ([row("A", "x", 1), row("B", "y", 0)], "no problem of"),
]


@pytest.mark.parametrize(("rows", "complaint"), MALFORMED, ids=[complaint for _, complaint in MALFORMED])
def test_malformed(rows: list[dict[str, Any]], complaint: str, refused: Refused, tmp_path: Path) -> None:
    """A row that cannot be used is named by file, row and field, and nothing is written."""
    assert complaint in refused("math500-mia", write_lines(tmp_path / "in.jsonl", rows))


WRONG = [
    (["--temperature", "3"], "extra_info.temperature"),
    (["--template", "kind"], "--template: 'kind' is neither a file nor one of default, binary"),
    (["--extra", '{"api_key": "k"}'], "--extra: 'api_key' is not one of"),
    (["--extra", '{"labels": 1, "verdict": "logprob"}'], "extra_info.labels"),
    (["--extra", "[]"], "--extra: expected an object"),
    (["--extra", "{"], "--extra: not JSON"),
    (["--data-source", "math"], "--data-source: 'math' must begin with llm_judge_remote"),
]


@pytest.mark.parametrize(("arguments", "complaint"), WRONG, ids=[complaint for _, complaint in WRONG])
def test_wrong_options(arguments: list[str], complaint: str, refused: Refused) -> None:
    """An option that the judge would refuse is refused before anything is written."""
    assert complaint in refused("math500-mia", PAIRS, *arguments)
