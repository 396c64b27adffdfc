"""Golden responses come from the request, else from the data set by the prompt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewardstack.errors import SettingsError
from rewardstack_rules.golden import load_golden
from tests.rules.conftest import DATASET, RewardServer


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("What is 6 * 7?", ["42"]),
        ("  What is\n6 * 7? ", ["42"]),
        ("Name a prime.", ["2", "3"]),
        ("How many?", ["12"]),
        ("What is shown?", None),
        ("what is 6 * 7?", None),
        ("", None),
    ],
    ids=["exact", "white space", "several", "a number", "two answers", "case", "empty"],
)
def test_lookup(dataset: Path, prompt: str, answer: list[str] | None) -> None:
    """A prompt is found as it is or with other white space; not where rows contradict each other."""
    assert load_golden(dataset).find(prompt) == answer


def test_exact_beats_normalised(tmp_path: Path) -> None:
    """A question that is the prompt, byte for byte, is preferred to one that differs in white space."""
    path = tmp_path / "golden.jsonl"
    rows = [{"question": "a  b", "answer": "two"}, {"question": "a b", "answer": "one\u2028"}]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))

    golden = load_golden(path)

    assert (golden.find("a b"), golden.find("a  b"), golden.find(" a b")) == (["one\u2028"], ["two"], None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "cannot be read"),
        ("{}", "must hold a list of rows"),
        ('[{"question": "a", "answer": "b"}, {"question": "a"}]', "row 2 of .* needs the keys question and answer"),
        ('[{"question": 1, "answer": "b"}]', "row 1 of .*: question must be a string"),
        ('[{"question": "a", "answer": {}}]', "row 1 of"),
        ("[1]", "row 1 of"),
    ],
)
def test_unusable_file(tmp_path: Path, text: str, complaint: str) -> None:
    """A data set that cannot be used is an error at the start that names the row."""
    path = tmp_path / "golden.json"
    path.write_text(text)

    with pytest.raises(SettingsError, match=f"^DATASET_PATH: .*{complaint}"):
        load_golden(path)


def test_dataset_behind_the_server(server: RewardServer) -> None:
    """The server scores by its data set what comes without golden responses, and says what it could not find."""
    prompts = [row["question"] for row in DATASET] + ["Who knows?"]
    responses = ["#### 42", "#### 3", "#### 1", "#### 1", "#### 12", "#### 1"]

    reply = server.post("/get_reward?reward_type=gsm8k", {"prompts": prompts, "responses": responses}).json()

    assert reply == {
        "rewards": [1.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        "statuses": ["ok", "ok", "unscored", "unscored", "ok", "unscored"],
    }


def test_body_before_dataset(server: RewardServer) -> None:
    """A golden response in the body counts; only where it is null the data set is asked."""
    body = {"prompts": ["What is 6 * 7?"] * 2, "responses": ["#### 42"] * 2, "golden_responses": ["41", None]}

    assert server.post("/get_reward?reward_type=gsm8k", body).json()["rewards"] == [0.0, 1.0]
