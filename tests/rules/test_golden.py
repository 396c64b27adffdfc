"""Golden responses come from the request, else from the data set by the prompt."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rewardstack.errors import SettingsError
from rewardstack_rules.golden import GoldenResponses, load_golden, responses
from rewardstack_rules.golden.nearest import MAX_LENGTH
from rewardstack_rules.settings import Settings
from tests.rules.conftest import DATASET, RewardServer
from tests.support.table import Table

LOOKUPS: dict[str, tuple[str, list[str] | None]] = {
    "exact": ("What is 6 * 7?", ["42"]),
    "white space": ("  What is\n6 * 7? ", ["42"]),
    "several": ("Name a prime.", ["2", "3"]),
    "a number": ("How many?", ["12"]),
    "two answers": ("What is shown?", None),
    "case": ("WHAT is 6 * 7?", ["42"]),
    "a tag, which is much of it": ("<image>What is 6 * 7?", None),
    "typos": ("Whatt is 6 * 7", ["42"]),
    "another number": ("What is 6 * 8?", None),
    "another sign": ("What is 6 + 7?", None),
    "near two answers": ("What is shown", None),
    "unlike": ("Who is it?", None),
    "empty": ("", None),
    "one character": ("?", None),
    "too long": ("\ud800" * 20_000, None),
}


def test_lookup(dataset: Path, table: Table) -> None:
    """A prompt is found as it is, with other white space, or by likeness; not where rows contradict each other."""
    for name, (prompt, answer) in LOOKUPS.items():
        with table.case(name):
            assert load_golden(dataset, 0.9).find(prompt) == answer


def test_exact_beats_normalised(tmp_path: Path) -> None:
    """A question that is the prompt, byte for byte, is preferred to one that differs in white space."""
    path = tmp_path / "golden.jsonl"
    rows = [{"question": "a  b", "answer": "two"}, {"question": "a b", "answer": "one\u2028"}]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))

    golden = load_golden(path, 0.9)

    assert (golden.find("a b"), golden.find("a  b"), golden.find(" a b")) == (["one\u2028"], ["two"], None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "cannot be read"),
        ("{}", "must hold a list of rows"),
        ('[{"question": "a", "answer": "b"}, {"question": "a"}]', "row 2 of .* is malformed; it needs question"),
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
        load_golden(path, 0.9)


@pytest.mark.parametrize(
    ("threshold", "answer"), [(0.5, ["red"]), (0.8, ["red"]), (0.95, None), (1.0, None)], ids=lambda value: str(value)
)
def test_threshold(threshold: float, answer: list[str] | None) -> None:
    """The nearest question answers where it is near enough."""
    rows = [("Which colour has a rose?", ("red",)), ("Which colour has the sky?", ("blue",))]

    assert GoldenResponses(rows, threshold).find("What colour has a rose?") == answer


@pytest.mark.parametrize(("other", "answer"), [("red", ["red"]), ("blue", None)])
def test_equally_near(other: str, answer: list[str] | None) -> None:
    """Of two questions that are equally near, each must have the same answer."""
    rows = [("Which colour has rose a?", ("red",)), ("Which colour has rose b?", (other,))]

    assert GoldenResponses(rows, 0.9).find("Which colour has rose c?") == answer


@pytest.mark.parametrize(("size", "answer"), [(MAX_LENGTH - 1, ["yes"]), (MAX_LENGTH, None)])
def test_long_question(size: int, answer: list[str] | None) -> None:
    """A question, and a prompt, that is too long to be compared is found as it is or not at all."""
    text = ("long " * size)[: size - 1] + "?"
    golden = GoldenResponses([(text, ("yes",)), (text * 2, ("no",))], 0.9)

    assert (answer, ["no"], None) == (golden.find(text + "!"), golden.find(text * 2), golden.find(text * 2 + "!"))


def test_many_questions() -> None:
    """Among 10,000 questions much like each other each is found with a typo, asked for again as well, from threads."""
    golden = GoldenResponses([(question(number), (str(number),)) for number in range(10_000)], 0.9)
    wanted = list(range(0, 10_000, 50)) * 2

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: golden.find(question(number).replace("basket", "bassket")), wanted))

    assert found == [[str(number)] for number in wanted]


def question(number: int) -> str:
    """A question that differs from the others in two words, and in no numeral."""
    first, second = ("".join(chr(97 + number // 26**place % 26) for place in places) for places in ((0, 1), (2, 3)))
    return f"There are {first * 3} apples in the basket and {second * 3} pears beside it. How many fruits are there?"


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many different prompts the least recently used are forgotten, and found again."""
    monkeypatch.setattr(responses, "MAX_CACHED_PROMPTS", 2)
    golden = GoldenResponses([("What is shown?", ("a cat",))], 0.9)

    found = [golden.find(f"What is shown{end}") for end in ("", "!", "?!", "", "!")]

    assert ([["a cat"]] * 5, 2) == (found, len(golden._cached))


@pytest.mark.parametrize("value", ["0", "1.5", "nan", "near"])
def test_threshold_setting(value: str) -> None:
    """A threshold that is none is an error at the start that names the variable."""
    with pytest.raises(SettingsError, match="^GOLDEN_THRESHOLD"):
        Settings.from_env({"GOLDEN_THRESHOLD": value})


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
