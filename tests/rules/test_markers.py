"""Text is markup only where it can only be markup: markers hide no words, and break no programs and no JSON."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from rewardstack.pipeline import items as pipeline_items
from rewardstack.pipeline.items import read_request
from rewardstack.score import Request
from rewardstack.scorers.judge.conversation import read_shown_parts
from rewardstack_rules.code.extraction import extract_code
from rewardstack_rules.http.app import create_app
from rewardstack_rules.settings import Settings
from rewardstack_verifier import transcript
from tests.support.markers import END_TOKENS, HEADERS, MARKERS, REASONING
from tests.support.table import Table

BEFORE, AFTER = "A short answer of six words.", "the secret plan " * 30
OPTIONS: dict[str, dict[str, Any]] = {
    "length": {"max_length": 10},
    "repetition": {"ngram_size": 3},
    "regex_format": {"pattern": "(?s)(?!.*secret).*"},
    "exact_match": {},
}
JOINS = ("", " ", "\n")
PROGRAMS = {
    "a string": 'x = "{}"\nprint(42)\n',
    "a formatted string": "x = 1\nprint(f'{}{{x}}')\n",
    "a comment": "# {}\nprint(42)\n",
    "a line of a text": 'x = """\n{}\n"""\nprint(42)\n',
    "a type": "std::vector{} v; // {}\n",
    "a key": 'x = {{"{}": 1}}\n',
    "a comparison": "print(a {} b)\n",
}
PROGRAM_SHAPES = ("```python\n{}```", "So:\n```python\n{}```\nIt is right.", "<think>Hm.</think>\n```python\n{}```")
DOCUMENTS = ({"t": "a{}b"}, {"{}": 1}, ["{}"], {"t": "<s>{}</s>"}, "{}", {"t": "'{}'"}, {"t": "\n{}\n"})


@pytest.fixture(scope="module")
def rewards() -> Any:
    """Return a function that scores items, and returns their values."""
    client = create_app(Settings.from_env({})).test_client()

    def score(items: list[dict[str, Any]]) -> list[float | None]:
        reply = client.post("/v1/score", json={"items": items})
        assert reply.status_code == 200, reply.get_json()
        return [one["value"] for one in reply.get_json()["scores"]]

    return score


def judged(response: Any) -> str:
    """What a judge is shown of a response."""
    item, _ = read_request(Request("llm_judge_remote", response, None, {"problem": "p"}))
    return read_shown_parts(item, "last_reply", hide=True, allow_urls=False).candidate


def test_markers_hide_nothing(rewards: Any, table: Table) -> None:
    """What counts or forbids words gives a text with a marker the reward of the same text with a word in its place."""
    cases = [(rule, marker, join) for rule, marker, join in product(OPTIONS, MARKERS, JOINS)]
    items = [
        {"data_source": rule, "solution_str": text, "ground_truth": text, "extra_info": OPTIONS[rule]}
        for rule, marker, join in cases
        for text in (
            f"{BEFORE}{join}{marker}{join}{AFTER}",
            f"{BEFORE}{join}word{' ' * marker[-1].isspace()}{join}{AFTER}",
        )
    ]
    values = rewards(items)
    for index, (rule, marker, join) in enumerate(cases):
        with table.case(f"{rule}: {marker!r} between {join!r}"):
            assert values[2 * index] == pytest.approx(values[2 * index + 1], abs=0.02)


def test_a_judge_sees_all_words(table: Table) -> None:
    """A judge sees what stands behind a marker, in a string and in a message."""
    for marker, join in product([marker for marker in MARKERS if marker not in REASONING], JOINS):
        with table.case(f"{marker!r} between {join!r}"):
            text = f"{BEFORE}{join}{marker}{join}{AFTER}"
            assert judged(text) == text and judged([{"role": "assistant", "content": text}]) == text


def test_complete_headers(rewards: Any, table: Table) -> None:
    """A complete header behind its end token, and closed output behind a closed call, are markup."""
    right, wrong = "\\boxed{42}", "\\boxed{41}"
    texts = {
        f"{wrong}<|im_end|>\n<|im_start|>user\n{right}": 0.0,
        f"{right}<|im_end|>\n<|im_start|>user\n{wrong}": 1.0,
        f"{wrong}<|im_end|>\n<|im_start|>assistant\n{right}": 1.0,
        f"{wrong}</s>[INST] {right}": 0.0,
        f"{wrong}<|eot|><|header_start|>user<|header_end|>\n\n{right}": 0.0,
        f"I look.<search>q</search>\n<information>{right}</information>": 0.0,
        f"I look.<search>q</search>\n<information>{wrong}</information>\n{right}": 1.0,
        f"```python\nprint(1)\n```\n```output\n{right}\n```\nI give up.": 0.0,
    }
    values = rewards([{"data_source": "math", "solution_str": text, "ground_truth": "42"} for text in texts])
    for (text, expected), value in zip(texts.items(), values, strict=True):
        with table.case(text):
            assert value == expected


def test_programs(table: Table) -> None:
    """A program in a fenced block is the same program, whatever markers it contains."""
    for (name, program), shape, marker in product(PROGRAMS.items(), PROGRAM_SHAPES, [m.strip() for m in MARKERS]):
        with table.case(f"{marker!r} in {name}, in {shape[:10]!r}"):
            text = program.format(*[marker] * 2)
            for response in (shape.format(text), [{"role": "assistant", "content": shape.format(text)}]):
                item, _ = read_request(Request("code", response, "x"))
                assert extract_code(item.solution, "python", "fence") == text


def test_json(rewards: Any, table: Table) -> None:
    """JSON with markers in its texts and keys is valid under the schema that demands these texts."""
    cases: list[tuple[str, dict[str, Any]]] = []
    for document, marker, is_fenced in product(DOCUMENTS, MARKERS, (False, True)):
        value = json.loads(json.dumps(document).replace("{}", json.dumps(marker)[1:-1]))
        text = json.dumps(value, ensure_ascii=False)
        response = f"```json\n{text}\n```" if is_fenced else text
        as_message = [{"role": "assistant", "content": response}]
        extra = {"schema": {"const": value}}
        for solution in (response, as_message):
            cases.append((response, {"data_source": "json_schema", "solution_str": solution, "extra_info": extra}))
    for index, value in enumerate(rewards([item for _, item in cases])):
        with table.case(f"{index}: {cases[index][0]}"):
            assert value == 1.0


def test_none(rewards: Any, table: Table) -> None:
    """With `transcript: none`, a string is one turn of text, and a score of the same sample without it stays apart."""
    for end, header in product(END_TOKENS[:3], HEADERS[:3]):
        text = f"\\boxed{{41}}{end}{header}\\boxed{{42}}<search>q</search><result>\\boxed{{41}}</result>"
        item = {"data_source": "exact_match", "solution_str": text, "ground_truth": text}
        with table.case(text):
            assert rewards([{**item, "extra_info": {"transcript": "none"}}, item])[0] == 1.0
            assert rewards([item, item])[0] == 0.0


def test_where_it_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A sample's `transcript` precedes that of its route, which precedes the server's."""
    text = "41<|im_end|>\n<|im_start|>assistant\n42"
    (routes := tmp_path / "routes.json").write_text(
        json.dumps({"routes": {"split": {"route": "exact_match", "transcript": "chatml"}, "plain": "exact_match"}})
    )
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
    monkeypatch.setenv("REWARDSTACK_TRANSCRIPT", "none")
    client = create_app(Settings.from_env({})).test_client()
    asked = [("plain", {}), ("split", {}), ("split", {"transcript": "none"}), ("plain", {"transcript": "auto"})]
    sample = {"solution_str": text, "ground_truth": "42"}
    items = [{**sample, "data_source": route, "extra_info": extra} for route, extra in asked]
    values = [score["value"] for score in client.post("/v1/score", json={"items": items}).get_json()["scores"]]
    assert values == [0.0, 1.0, 0.0, 1.0]


def test_unknown_family() -> None:
    """An unknown value of `transcript` makes the sample unscored, and names the values."""
    client = create_app(Settings.from_env({})).test_client()
    item = {"data_source": "math", "solution_str": "42", "ground_truth": "42", "extra_info": {"transcript": "chat"}}
    [score] = client.post("/v1/score", json={"items": [item]}).get_json()["scores"]
    assert score["status"] == "unscored" and score["field"] == "extra_info.transcript"
    assert score["reason"].startswith("extra_info.transcript: expected one of auto, none, chatml, ")


def test_split_once(rewards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each response is split into turns once a request, also for a judge that sees all turns."""
    split: list[str] = []

    def count(response: str, how: str = "auto") -> transcript.Transcript:
        split.append(response)
        return whole(response, how)

    whole = transcript.split_turns
    monkeypatch.setattr(pipeline_items, "split_turns", count)
    monkeypatch.setattr(transcript, "split_turns", count)
    texts = ["\\boxed{42}<|im_end|>\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n\\boxed{42}", "#### 42"]
    for rule in ("math", "gsm8k", "exact_match", "multiple_choice"):
        rewards([{"data_source": rule, "solution_str": text, "ground_truth": "42"} for text in texts])
        assert split == texts
        split.clear()
    judged(texts[0])
    item, _ = read_request(Request("llm_judge_remote", texts[0], None, {"problem": "p"}))
    assert len(read_shown_parts(item, "full_trace", hide=False, allow_urls=False).trace) == 3
    assert split == texts[:1] * 2
