"""Reading the last assistant turn: the cases are in `tests/cases/transcripts.json`, each with its reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rewardstack_verifier.extraction.extract import extract_answer
from rewardstack_verifier.extraction.visible_text import without_dialogue
from rewardstack_verifier.transcript import (
    FAMILIES,
    last_turn,
    split_reasoning,
    split_turns,
    without_reasoning,
)
from tests.support.table import Table

CASES = json.loads((Path(__file__).parents[1] / "cases" / "transcripts.json").read_text())
TURNS, REASONING = CASES["last_turn"], CASES["split_reasoning"]
TEMPLATES = sorted({case["template"] for case in TURNS})
PARTS = [
    *("<|im_end|>", "a<|im_end|>", "</s>", "<s>", " <s> ", "[INST]", "[/INST]", "<|x_y|>", '"</s>"', "<"),
    *("<|im_start|>", "<|im_start|>assistant\n", "<|im_start|>user\n", "<|turn>", "<|start_header_id|>", "<seed:bos>"),
    *("<result>", "</result>", "<result><information>", "<tool_response></tool_response>", "<information "),
    *("</search><output>", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "```output\n", "```\n", "\n```output\nx\n```\n"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>a", "<|start|>assistant", "\n\nUser:", "</think>"),
]


@pytest.mark.parametrize("template", TEMPLATES)
def test_last_turn(template: str, table: Table) -> None:
    """The last turn of a response is the one that the data gives a reason for."""
    for case in TURNS:
        if case["template"] == template:
            with table.case(f"{case['reason']}: {case['response'][:60]}"):
                assert last_turn(case["response"]) == case["turn"], case["reason"]


def test_cases_are_unique() -> None:
    """No response is in the data twice, and each has a reason."""
    responses = [case["response"] for case in TURNS]
    assert len(set(responses)) == len(responses)
    assert all(case["reason"] for case in [*TURNS, *REASONING])


def test_split_reasoning(table: Table) -> None:
    """Reasoning is separated from the answer, and all that follows its end is the answer."""
    for case in REASONING:
        with table.case(f"{case['reason']}: {case['text']}"):
            assert split_reasoning(case["text"]) == (case["reasoning"], case["answer"])


def test_dialogue() -> None:
    """A paragraph of another speaker ends a final answer, but does not begin one."""
    assert without_dialogue("42\n\nHuman: and 43?") == "42"
    assert without_dialogue("\n\nUser: 42") == "\n\nUser: 42"
    assert without_dialogue("42\nHuman: 43") == "42\nHuman: 43"


def test_answer() -> None:
    """The search for a final answer sees the last turn alone, and reasoning only where the reply has no answer."""
    assert extract_answer("\\boxed{41}<|im_end|>\n<|im_start|>assistant\n\\boxed{42}<|im_end|>") == "42"
    assert extract_answer("[THINK]\\boxed{41}[/THINK]\\boxed{42}</s>") == "42"
    assert extract_answer("<|channel>thought\n\\boxed{41}<channel|>I give up, no \\boxed answer<turn|>") == "41"


BAR, LOW = "\uff5c", "\u2581"
END = f"<{BAR}end{LOW}of{LOW}sentence{BAR}>"
ROLLOUTS = {
    "chatml": "a<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\nc<|im_end|>",
    "llama3": "a<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nb<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\nc<|eot_id|>",
    "llama4": "a<|eot|><|header_start|>user<|header_end|>\n\nb<|eot|>"
    "<|header_start|>assistant<|header_end|>\n\nc<|eot|>",
    "gemma": "a<end_of_turn>\n<start_of_turn>user\nb<end_of_turn>\n<start_of_turn>model\nc<end_of_turn>",
    "gemma4": "a<turn|>\n<|turn>user\nb<turn|>\n<|turn>model\nc<turn|>",
    "mistral": "a</s>[INST] b [/INST] c</s>",
    "deepseek": f"a{END}<{BAR}User{BAR}>b<{BAR}Assistant{BAR}>c{END}",
    "seed": "a<seed:eos><seed:bos>user\nb<seed:eos><seed:bos>assistant\nc<seed:eos>",
    "harmony": "<|channel|>final<|message|>a<|return|><|start|>user<|message|>b<|end|>"
    "<|start|>assistant<|channel|>final<|message|>c<|return|>",
    "glm": "a</tool_call><|observation|>\nb<|assistant|>\nc<|user|>",
    "kimi": "a<|im_end|><|im_user|>user<|im_middle|>b<|im_end|><|im_assistant|>assistant<|im_middle|>c<|im_end|>",
    "minimax": "a[e~[\n]~b]user\nb[e~[\n]~b]ai\nc[e~[\n",
    "granite": "a<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>b<|end_of_text|>\n"
    "<|start_of_role|>assistant<|end_of_role|>c<|end_of_text|>",
    "nemotron": "a\n<SPECIAL_12>\n<SPECIAL_11>User\nb\n<SPECIAL_11>Assistant\nc\n<SPECIAL_12>",
}


def test_families(table: Table) -> None:
    """A rollout of each family is read alike whether the family is found or named; another family leaves it whole."""
    for name in FAMILIES:
        with table.case(name):
            found, named = split_turns(ROLLOUTS[name]), split_turns(ROLLOUTS[name], name)
            assert [text[-1] for _, text in found.turns] == ["a", "b", "c"] or name == "glm"
            assert found.turns == named.turns and found.last.strip() == "c"
            assert found.turns[1].role not in ("assistant", "reasoning")
            assert split_turns(ROLLOUTS[name], "none").last.strip()[0] == ROLLOUTS[name][0]
            other = "gemma" if name != "gemma" else "kimi"
            assert len(split_turns(ROLLOUTS[name], other).turns) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("part", PARTS)
def test_linear_time(part: str) -> None:
    """The longest text of markers that is read at all is read, in seconds.

    If each of the 200,000 markers cost a step for each earlier one, these 20 billion steps would take longer than the
    limit of 300 s for a test; and far longer, if each cost a search through the whole text.
    """
    text = part * (2_000_000 // len(part))
    split = split_turns(text)
    assert len(split.last) <= len(text)
    assert len(split.turns) <= len(text)
    split_reasoning(text)
    without_reasoning(text)
    without_dialogue(text)


@pytest.mark.usefixtures("needs_process")
def test_standard_library_alone() -> None:
    """The module needs nothing but Python: it works as a file."""
    path = Path(sys.modules[last_turn.__module__].__file__ or "")
    code = f"import runpy; print(runpy.run_path({str(path)!r})['last_turn']('42</s>'))"
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("42\n", "")


ALL_TURNS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "no markers": ("It is 42.", [("assistant", "It is 42.")]),
    "ChatML with a tool": (
        "I look.<|im_end|>\n<|im_start|>user\n<tool_response>\n7\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\nIt is 7.<|im_end|>",
        [("assistant", "I look."), ("tool", "7"), ("assistant", "It is 7.")],
    ),
    "a user speaks": (
        "Which one?<|im_end|>\n<|im_start|>user\nThe red one.<|im_end|>\n<|im_start|>assistant\nRed.",
        [("assistant", "Which one?"), ("user", "The red one."), ("assistant", "Red.")],
    ),
    "Llama 3": (
        "a<|eom_id|><|start_header_id|>ipython<|end_header_id|>\n\n7<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nb",
        [("assistant", "a"), ("ipython", "7"), ("assistant", "b")],
    ),
    "tags alone": (
        "a<search>q</search><information>7</information>b",
        [("assistant", "a<search>q</search>"), ("tool", "<information>7</information>"), ("assistant", "b")],
    ),
    "harmony": (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>7<|return|>",
        [("reasoning", "Hm."), ("assistant", "7")],
    ),
    "two turns of the assistant": (
        "a<|im_end|>\n<|im_start|>assistant\nb<|im_end|>",
        [("assistant", "a"), ("assistant", "b")],
    ),
    "blank turns": ("<|im_end|>\n<|im_start|>user\n <|im_end|>", []),
    "a call of gpt-oss": (
        "<|channel|>commentary to=functions.calc <|constrain|>json<|message|>{}<|call|>"
        "<|start|>functions.calc to=assistant<|channel|>commentary<|message|>7<|end|>"
        "<|start|>assistant<|channel|>final<|message|>It is 7.<|return|>",
        [("assistant", "{}"), ("functions.calc", "7"), ("assistant", "It is 7.")],
    ),
}


def test_all_turns(table: Table) -> None:
    """Every turn comes back with its role, and the last of the assistant is that of `last_turn`."""
    for name, (text, expected) in ALL_TURNS.items():
        with table.case(name):
            assert split_turns(text).turns == tuple(expected)
            spoken = [turn for role, turn in expected if role == "assistant"]
            assert not spoken or spoken[-1] == last_turn(text).strip().rpartition("\n")[2] or name == "tags alone"


def test_without_reasoning(table: Table) -> None:
    """Marked reasoning is removed wherever it stands; what does not end hides the rest."""
    for text, rest in (
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a", ""),
        ("a<think>b", "a"),
        ("[THINK]a[/THINK]b", "b"),
        ("<think>a</thinking>b</think>c", "c"),
        ("say `<think>` so", "say `<think>` so"),
        ("plain", "plain"),
    ):
        with table.case(text):
            assert without_reasoning(text) == rest
